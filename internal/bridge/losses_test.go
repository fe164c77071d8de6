package bridge

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// lossesOf are the sequences that a shelf has of the sink.
func lossesOf(t *testing.T, s *spool, shelf journal.Shelf) (sequences []uint64) {
	t.Helper()
	events, err := s.shelved(shelf, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		sequences = append(sequences, e.Sequence)
	}
	return sequences
}

// One event fails and holds the cursor while all others are delivered, some before
// retention takes them and some after: only the one is named by the next bridge.
func TestWhatWasDeliveredBehindAStuckCursorIsNotLost(t *testing.T) {
	for name, after := range map[string]func(t *testing.T, s *spool, j *journal.Journal) error{
		"it is stopped":   func(t *testing.T, s *spool, _ *journal.Journal) error { return s.tidy(t.Context()) },
		"it goes on":      func(t *testing.T, s *spool, j *journal.Journal) error { return s.forfeit(t.Context(), j.Retiring(41)) },
		"and none is new": func(t *testing.T, s *spool, j *journal.Journal) error { return s.forfeit(t.Context(), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, log := t.TempDir(), &lines{}
			j, err := journal.Open(dir, journal.Options{SegmentBytes: 1000, MaxBytes: 3000})
			if err != nil {
				t.Fatal(err)
			}
			for batch := range int64(20) {
				put(t, j, progressOf("a", batch), progressOf("b", batch))
			}
			s := spoolOf(t, j, log, sinks.Match{})
			drainTo(t, s, 40)
			var settled atomic.Uint64 // all but the second event, up to here
			s.settled = func(sequence uint64) bool { return sequence != 2 && sequence <= settled.Load() }
			if err := j.State().SaveCursors(map[string]uint64{"events": 2}); err != nil {
				t.Fatal(err)
			}
			settled.Store(6)
			before := j.Retiring(41)
			if err := errors.Join(s.forfeit(t.Context(), before), j.Retain(before)); err != nil {
				t.Fatal(err)
			}
			if got := lossesOf(t, s, journal.ShelfReading); len(got) != int(before-6) || got[0] != 2 || got[1] != 7 {
				t.Fatalf("noted %v", got)
			}
			settled.Store(40)
			if err := after(t, s, j); err != nil {
				t.Fatal(err)
			}
			if got := lossesOf(t, s, journal.ShelfReading); !slices.Equal(got, []uint64{2}) {
				t.Errorf("noted %v", got)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}

			j = tight(t, dir, 3000)
			s = spoolOf(t, j, log, sinks.Match{})
			if len(s.gaps) != 1 || s.gaps[0].ID != "b:gap:0-0" || s.gone.Load() != 1 {
				t.Errorf("named %v, counted %d", s.gaps, s.gone.Load())
			}
		})
	}
}

// The same with a whole sink: what it delivers after retention, and before it is stopped,
// is not named by the next bridge; what failed all the time is.
func TestASinkThatIsStoppedNamesOnlyWhatItHas(t *testing.T) {
	dir, log := t.TempDir(), &lines{}
	j, err := journal.Open(dir, journal.Options{SegmentBytes: 1000, MaxBytes: 3000})
	if err != nil {
		t.Fatal(err)
	}
	put(t, j, progressOf("b", 0))
	for batch := range int64(40) {
		put(t, j, progressOf("a", batch))
	}
	reached, goOn := make(chan struct{}), make(chan struct{})
	to := &receiver{refuse: func(e listener.Event) error {
		switch {
		case e.RunID == "b":
			return errors.New("still 500")
		case e.ID == "a:progress:4":
			close(reached)
			<-goOn
		}
		return nil
	}}
	cfg := configs.Sink{Name: "events", From: configs.FromOldest, GiveUp: time.Hour, DeadLetters: configs.DeadLetters{Max: 10}}
	cfg.Retry.Initial, cfg.Retry.Max = time.Millisecond, 10*time.Millisecond
	o, stop := deliverTo(t, j, cfg, to, log)
	<-reached
	before := j.Retiring(42)
	if err := errors.Join(o.spool.forfeit(t.Context(), before), j.Retain(before)); err != nil {
		t.Fatal(err)
	}
	if got := lossesOf(t, o.spool, journal.ShelfReading); !slices.Contains(got, 1) || !slices.Contains(got, 7) || slices.Contains(got, 2) {
		t.Errorf("noted %v", got)
	}
	close(goOn)
	eventually(t, "the others are delivered", func() bool { return slices.Contains(to.ids(), "a:progress:39") })
	stop()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}

	s := spoolOf(t, tight(t, dir, 3000), log, sinks.Match{})
	if s.gaps[0].ID != "b:gap:0-0" || s.gone.Load() != 1 { // the gap of what was not read comes again, as all behind the cursor
		t.Errorf("named %s first of %d, counted %d", s.gaps[0].ID, len(s.gaps), s.gone.Load())
	}
}

// Nothing can be stored on a full disk, and retention frees it all the same, for each
// sink. Its gaps are handed out, and are stored when there is room.
func TestRetentionFreesAFullDisk(t *testing.T) {
	var full atomic.Bool
	log := &lines{}
	j := openJournal(t, t.TempDir(), journal.Options{SegmentBytes: 1000, MaxBytes: 3000, Disturb: func(step journal.Step) error {
		if full.Load() && step == journal.StepState {
			return syscall.ENOSPC
		}
		return nil
	}})
	if err := j.State().SaveCursors(map[string]uint64{"events": 1}); err != nil {
		t.Fatal(err)
	}
	for batch := range int64(40) {
		put(t, j, progressOf("a", batch))
	}
	full.Store(true)
	behind, other := spoolOf(t, j, log, sinks.Match{}), spoolOf(t, j, log, sinks.Match{})
	if _, err := behind.Next(t.Context(), 1, 1<<20); err != nil { // has one in hand
		t.Fatal(err)
	}
	k := &keeper{
		cfg: configs.Journal{WhenFull: configs.WhenFullDropOldest, MaxBytes: 3000}, journal: j, log: slog.New(slog.NewTextHandler(log, nil)),
		outlets: []*outlet{{name: "events", spool: behind}, {name: "other", spool: other}},
	}
	if err := k.retain(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, _ := j.Bounds()
	if first == 1 || j.Stats().Bytes > 3000 {
		t.Fatalf("nothing was freed: the journal begins at %d", first)
	}
	if n := log.count(fmt.Sprintf("from=2 to=%d", first-1)); n != 1 {
		t.Errorf("told %d times: %s", n, log)
	}
	if got := lossesOf(t, behind, journal.ShelfLosses); len(got) != 0 {
		t.Errorf("stored %v", got)
	}
	full.Store(false)
	if err := k.retain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := lossesOf(t, behind, journal.ShelfLosses); !slices.Equal(got, []uint64{first - 1}) {
		t.Errorf("stored %v", got)
	}
	events, err := behind.Next(t.Context(), 4, 1<<20)
	if err != nil || len(events) != 1 || events[0].Kind != listener.KindGap || behind.gone.Load() != first-2 {
		t.Errorf("handed out %v, %v", events, err)
	}
	if err := j.State().SaveCursors(map[string]uint64{"events": 41}); err != nil { // delivered
		t.Fatal(err)
	}
	if err := k.retain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := lossesOf(t, behind, journal.ShelfLosses); len(got) != 0 {
		t.Errorf("kept for ever: %v", got)
	}
}
