package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
)

const (
	// keepEvery is how often marks are stored and old segments deleted, beside each time
	// that a segment is full.
	keepEvery = 30 * time.Second
	// watchEvery is the same where the journal may fill up, and while it is larger than
	// it may be: marks that are old would keep it from getting smaller.
	watchEvery = time.Second
)

// errFull says that the journal has no room, and may not make any.
var errFull = errors.New("the journal is full")

// keeper stores marks, and lets retention delete what nobody needs: no source, and
// with when_full: block no sink either.
type keeper struct {
	cfg     configs.Journal
	journal *journal.Journal
	sources []*source
	outlets []*outlet
	log     *slog.Logger
	mu      sync.Mutex // one retention at a time
}

// run keeps until ctx ends, and then stores the marks once more.
func (k *keeper) run(ctx context.Context) {
	var last string
	var said time.Time
	for {
		err := k.retain(ctx)
		switch {
		case err == nil:
			last = ""
		case ctx.Err() == nil && (err.Error() != last || time.Since(said) >= repeatAfter):
			last, said = err.Error(), time.Now()
			k.log.Error("old segments of the journal were not deleted", "err", err)
		}
		rest := keepEvery
		if k.blocks() || err == nil && k.excessive() {
			rest = watchEvery
		}
		select {
		case <-ctx.Done():
			note(k.journal, k.sources, k.log)
			return
		case <-k.journal.Turned():
		case <-time.After(rest):
		}
	}
}

// excessive says that the journal has a segment too many. When one turns, the marks of
// the source that writes cannot be stored until its event is in the journal, and
// without them it may be that nothing can be deleted yet.
func (k *keeper) excessive() bool {
	st := k.journal.Stats()
	return st.Segments > 1 && st.Bytes > int64(k.cfg.MaxBytes)
}

func (k *keeper) blocks() bool { return k.cfg.WhenFull == configs.WhenFullBlock }

// retain deletes what is too old or too much. What a sink loses by that is named
// before it goes.
func (k *keeper) retain(ctx context.Context) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	floor := note(k.journal, k.sources, k.log)
	if k.blocks() {
		slowest, at, err := k.slowest()
		if err != nil {
			return err
		}
		if slowest != "" {
			floor = min(floor, at)
		}
		return k.journal.Retain(floor)
	}
	before := k.journal.Retiring(floor)
	for _, o := range k.outlets {
		if err := o.spool.forfeit(ctx, before); err != nil {
			return fmt.Errorf("name what sink %s loses: %w", o.name, err)
		}
	}
	return k.journal.Retain(before)
}

// slowest is the sink that needs the oldest event, at its own place or for a replay.
func (k *keeper) slowest() (name string, at uint64, err error) {
	for _, o := range k.outlets {
		cursor, _, err := k.journal.State().Cursor(o.name)
		if err != nil {
			return "", 0, err
		}
		asked, err := o.replays.Unfinished()
		if err != nil {
			return "", 0, err
		}
		for _, r := range asked {
			cursor = min(cursor, max(r.From, r.Next))
		}
		if name == "" || cursor < at {
			name, at = o.name, cursor
		}
	}
	return name, at, nil
}

// room reports errFull while there is no room for events: with when_full: block the
// sources wait for the slowest sink, and Spark keeps the events meanwhile.
func (k *keeper) room(ctx context.Context) error {
	if !k.blocks() || k.journal.Stats().Bytes <= int64(k.cfg.MaxBytes) {
		return nil
	}
	if err := k.retain(ctx); err != nil {
		return err
	}
	if k.journal.Stats().Bytes <= int64(k.cfg.MaxBytes) {
		return nil
	}
	slowest, at, err := k.slowest()
	if err != nil {
		return err
	}
	if _, next := k.journal.Bounds(); slowest == "" || at >= next {
		return nil // nobody waits for anything: what is left is the newest segment
	}
	return fmt.Errorf("%w (max_bytes is %s), and sink %s still needs its oldest events (when_full: block)", errFull, k.cfg.MaxBytes, slowest)
}

// note stores the marks of all sources and returns the sequence before which no
// source needs the journal any more.
func note(j *journal.Journal, sources []*source, log *slog.Logger) (floor uint64) {
	_, floor = j.Bounds()
	for _, s := range sources {
		if err := s.memory.note(s.admission.Load()); err != nil {
			log.Error("marks were not stored; the journal keeps more until they are", "err", err)
		}
		covered, err := s.memory.covered()
		if err != nil {
			log.Error("marks cannot be read; the journal deletes nothing", "err", err)
		}
		floor = min(floor, covered)
	}
	return floor
}
