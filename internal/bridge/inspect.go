package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sparkbridge/internal/control"
	"sparkbridge/internal/journal"
)

// Holdings is what a journal holds, and how far each of its sinks has come.
type Holdings struct {
	Folder   string         `json:"folder"`
	Running  bool           `json:"running"` // a bridge is, on it
	First    uint64         `json:"first"`
	Next     uint64         `json:"next"`
	Segments int            `json:"segments"`
	Bytes    int64          `json:"bytes"`
	Newest   time.Time      `json:"newest,omitzero"`
	Sinks    []SinkHoldings `json:"sinks"`
	// Torn counts the bytes of a write at the end that was never acknowledged.
	Torn int64 `json:"torn,omitempty"`
	// Damage tells what is wrong behind what is held, as far as it shows without reading
	// every record.
	Damage string `json:"damage,omitempty"`

	damage error
}

// Err is an error if the journal is damaged.
func (h *Holdings) Err() error {
	if h.damage == nil {
		return nil
	}
	return fmt.Errorf("%w: bridge journal verify reads every record, and bridge journal export prints what can be saved", h.damage)
}

// SinkHoldings is what a journal keeps for one sink.
type SinkHoldings struct {
	Name        string `json:"name"`
	Next        uint64 `json:"next"`
	Behind      uint64 `json:"behind"`
	DeadLetters int    `json:"deadLetters"`
}

// Inspect looks at the journal in a folder. It asks the bridge where one is running,
// and else reads the state itself. Of a damaged journal it tells what can be read.
func Inspect(ctx context.Context, dir string) (Holdings, error) {
	view, err := journal.Look(dir)
	if err != nil {
		return Holdings{}, advised(err)
	}
	held := Holdings{Folder: dir, Running: true, Newest: view.Newest(), Sinks: []SinkHoldings{}}
	held.First, held.Next = view.Bounds()
	held.Segments, held.Bytes = view.Size()
	held.damage = view.Damage()
	kept, err := control.Dial(dir).Kept(ctx)
	if errors.Is(err, control.ErrNotRunning) {
		held.Running, held.Torn = false, view.Torn() // of one that runs, it may be under way
		var own journal.Kept
		own, err = journal.Inspect(dir)
		kept = control.Kept(own)
	}
	if held.damage == nil && spoilt(err) {
		held.damage = err
	} else if err != nil && held.damage == nil {
		return Holdings{}, err
	}
	held.Damage = errorText(held.damage)
	for _, name := range slices.Sorted(maps.Keys(kept.Cursors)) {
		next := kept.Cursors[name]
		held.Sinks = append(held.Sinks, SinkHoldings{name, next, held.Next - min(next, held.Next), kept.Letters[name]})
	}
	return held, nil
}

// advised adds to an error about a journal what to do.
func advised(err error) error {
	switch {
	case errors.Is(err, journal.ErrNone):
		return fmt.Errorf("%w: name the folder of one with --journal, or the configuration of its bridge with -c", err)
	case spoilt(err):
		return fmt.Errorf("%w: restore the folder from a copy, or move it away to begin anew and keep it for what can be saved (bridge journal export)", err)
	}
	return err
}

// spoilt says that what was in a journal once cannot be read any more.
func spoilt(err error) bool {
	return errors.As(err, new(*journal.DamageError)) || errors.Is(err, journal.ErrMismatch)
}

// Verify reads and checks every record of the journal in a folder, and its state unless
// a bridge is running on it; state says whether it did.
func Verify(dir string) (report journal.Report, state bool, err error) {
	report, err = journal.Verify(dir)
	if errors.Is(err, journal.ErrLocked) {
		report, err = journal.VerifyLog(dir)
		return report, false, advised(err)
	}
	return report, true, advised(err)
}

// Forget drops what the journal in a folder keeps for a sink. No bridge may be running
// on it.
func Forget(dir, sink string) error {
	if _, err := journal.Look(dir); err != nil { // Open would make one
		return advised(err)
	}
	log, err := journal.Open(dir, journal.Options{})
	if err != nil {
		return advised(err)
	}
	return errors.Join(forget(log.State(), sink), log.Close())
}

func forget(state *journal.State, sink string) error {
	_, known, err := state.Cursor(sink)
	switch {
	case err != nil:
		return err
	case !known:
		return usage(fmt.Errorf("the journal knows no sink %q: bridge journal info lists them", sink))
	}
	return state.ForgetSink(sink)
}
