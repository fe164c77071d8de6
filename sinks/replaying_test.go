package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// slow is a box whose journal is slow at times: who cannot wait gets nothing.
type slow struct{ *box }

func (b slow) Open(from, to uint64) (sinks.Source, func() error, error) {
	source, closeSource, err := b.box.Open(from, to)
	return &slowReel{Source: source}, closeSource, err
}

type slowReel struct {
	sinks.Source
	calls int
}

func (r *slowReel) Next(ctx context.Context, maxEvents, maxBytes int) ([]listener.Event, error) {
	if r.calls++; r.calls%2 == 0 {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return r.Source.Next(ctx, maxEvents, maxBytes)
}

// A dry run counts what a replay brings, whatever is held back at its ends, however slow
// the journal is read, and wherever a restart comes.
func TestADryRunCountsWhatAReplayBrings(t *testing.T) {
	const every = 10 * time.Second
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 7))
			all := lanes(1+r.IntN(4), 20+r.IntN(100))
			at := time.Now().Add(-time.Hour)
			for i := range all {
				at = at.Add(time.Duration(r.IntN(3000)) * time.Millisecond)
				if all[i].Recorded = at; r.IntN(5) == 0 {
					all[i].Kind = []listener.Kind{listener.KindIdle, listener.KindTerminated, listener.KindStarted}[r.IntN(3)]
				}
			}
			from, to := 1+uint64(r.IntN(10)), uint64(len(all)-r.IntN(10))
			b := &box{journal: all, replays: []sinks.Replay{{ID: "r1", From: from, To: to}}}
			match := sinks.Match{Kinds: []listener.Kind{listener.KindProgress, listener.KindIdle, listener.KindTerminated}}
			source, _, _ := b.Open(from, to)
			want, err := sinks.Count(t.Context(), source, match, every)
			if err != nil {
				t.Fatal(err)
			}
			s := &script{deliver: func(ctx context.Context, events []listener.Event) (int, error) {
				time.Sleep(10 * time.Second)
				return len(events), nil
			}}
			again := func(o *sinks.Options) { o.Match, o.ProgressEvery, o.Replays = match, every, slow{b} }
			_, stop := s.run(t, b, again)
			time.Sleep(time.Duration(r.IntN(200)) * time.Second)
			if err := stop(); err != nil {
				t.Error(err)
			}
			w, stop := s.run(t, b, again)
			time.Sleep(time.Hour)
			got := s.delivered()
			slices.Sort(got)
			if got = slices.Compact(got); len(got) != want || len(b.asked()) != 0 {
				t.Errorf("seed %d: a dry run counts %d, the replay brings %d: %v; state %+v", seed, want, len(got), got, w.State())
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A stop in the middle of a delivery, or of the wait for room: the next run goes on where
// the replay was, and brings nothing twice.
func TestAReplayGoesOnWhereItWasStopped(t *testing.T) {
	for _, full := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := &box{max: 1, journal: lanes(2, 9), replays: []sinks.Replay{{ID: "r1", From: 2, To: 9}}}
			if err := b.Add(letterOf(1000)); err != nil {
				t.Fatal(err)
			}
			var well atomic.Bool
			s := &script{deliver: func(ctx context.Context, events []listener.Event) (int, error) {
				at := slices.IndexFunc(events, func(e listener.Event) bool { return e.Sequence == 6 })
				switch {
				case well.Load() || at < 0:
					return len(events), nil
				case full:
					return at, sinks.Permanent(errors.New("400"))
				}
				<-ctx.Done()
				return at, ctx.Err()
			}}
			_, stop := s.run(t, b, nil)
			time.Sleep(time.Hour)
			if err := stop(); err != nil || fmt.Sprint(s.delivered()) != "[2 3 4 5]" || len(b.asked()) != 1 || b.asked()[0].Next != 6 {
				t.Fatalf("full: %t, stopped with %v, delivered %v, replays %+v", full, err, s.delivered(), b.asked())
			}
			well.Store(true)
			_, stop = s.run(t, b, nil)
			synctest.Wait()
			if err := stop(); err != nil || fmt.Sprint(s.delivered(), b.sequences(t)) != "[2 3 4 5 6 7 8] [1000]" || len(b.asked()) != 0 {
				t.Errorf("full: %t, stopped with %v, delivered %v, letters %v, replays %+v", full, err, s.delivered(), b.sequences(t), b.asked())
			}
		})
	}
}

// Letters of which some were left for later are tried during a replay that is long.
func TestLettersAreTriedDuringAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{journal: lanes(1, 6000)}
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			time.Sleep(time.Second)
			if events[0].Sequence > 6000 {
				return 0, errors.New("still 500")
			}
			return len(events), nil
		}}
		for n := range uint64(60) {
			l := letterOf(7000 + n)
			l.Retry = true
			if err := b.Add(l); err != nil {
				t.Fatal(err)
			}
		}
		b.ask(sinks.Replay{ID: "r1", From: 1, To: 6001})
		_, stop := s.run(t, b, nil)
		time.Sleep(10 * time.Minute)
		left := slices.DeleteFunc(b.list(t), func(l sinks.Letter) bool { return !l.Retry })
		if len(left) != 0 || len(b.asked()) != 1 {
			t.Errorf("%d letters wait for the end of the replay %+v", len(left), b.asked())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// blind is a box that cannot tell its replays at times.
type blind struct {
	*box
	shut atomic.Bool
}

func (b *blind) First() (sinks.Replay, bool, error) {
	if b.shut.Load() {
		return sinks.Replay{}, false, errors.New("no more files")
	}
	return b.box.First()
}

// Whether a replay is cancelled is looked at again, if it could not be read.
func TestACancelledReplayIsLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &blind{box: &box{journal: lanes(1, 9000), replays: []sinks.Replay{{ID: "r1", From: 1, To: 9001}}}}
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			time.Sleep(time.Second)
			return len(events), nil
		}}
		w, stop := s.run(t, b.box, func(o *sinks.Options) { o.Replays = b })
		time.Sleep(time.Minute)
		b.shut.Store(true)
		w.Wake()
		time.Sleep(10 * time.Second)
		b.shut.Store(false)
		b.mu.Lock()
		b.replays = []sinks.Replay{{ID: "r2", From: 1, To: 1}} // in the place of r1
		b.mu.Unlock()
		time.Sleep(5 * time.Minute)
		if state := w.State(); state.Replay != "" || len(b.asked()) != 0 || len(s.delivered()) > 1000 {
			t.Errorf("state %+v, replays %+v", state, b.asked())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
