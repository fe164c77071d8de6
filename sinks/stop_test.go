package sinks_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// gone takes a few events and then wants no more, until it is open again.
type gone struct {
	open     atomic.Bool
	attempts atomic.Int64
}

func (g *gone) deliver(_ context.Context, events []listener.Event) (int, error) {
	g.attempts.Add(1)
	if g.open.Load() {
		return len(events), nil
	}
	return min(3, len(events)-1), sinks.Stopped(errors.New("410 gone"))
}

// Nothing is sent any more, lost or set aside, and the cursor has what was acknowledged.
func TestAStoppedSinkRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, b := &gone{}, &box{}
		s := &script{deliver: g.deliver, fed: make(chan any, 10)}
		s.fed <- lanes(2, 10)
		w, stop := s.run(t, b, func(o *sinks.Options) { o.MaxAge = time.Hour })
		began := time.Now()
		time.Sleep(72 * time.Hour)
		synctest.Wait()
		state := w.State()
		if !state.Stopped || state.Err == nil || !state.Since.Equal(began) || state.Next != 4 || s.lastSaved() != 4 {
			t.Errorf("state %+v, cursor %d", state, s.lastSaved())
		}
		if g.attempts.Load() != 1 || len(b.sequences(t)) != 0 || strings.Count(s.log.String(), "sink has stopped") != 1 {
			t.Errorf("%d attempts, dead letters %v\n%s", g.attempts.Load(), b.sequences(t), s.log.String())
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAStoppedSinkGoesOnWhenWoken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, b := &gone{}, &box{}
		s := &script{deliver: g.deliver, fed: make(chan any, 10)}
		s.fed <- lanes(2, 10)
		w, stop := s.run(t, b, nil)
		time.Sleep(72 * time.Hour)
		w.Wake() // too early
		time.Sleep(72 * time.Hour)
		if !w.State().Stopped || g.attempts.Load() != 2 {
			t.Errorf("after %d attempts: %+v", g.attempts.Load(), w.State())
		}
		g.open.Store(true)
		w.Wake()
		synctest.Wait()
		if state := w.State(); state.Stopped || state.Err != nil || !state.Since.IsZero() || state.Next != 11 || state.Delivered != 10 {
			t.Errorf("state %+v", state)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// What was asked for stays asked for.
func TestAStoppedSinkKeepsItsErrands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, b := &gone{}, &box{}
		b.journal = lanes(2, 10)
		b.replays = []sinks.Replay{{ID: "r1", From: 1, To: 11}}
		s := &script{deliver: g.deliver, fed: make(chan any, 10)}
		w, stop := s.run(t, b, nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		if state := w.State(); !state.Stopped || len(b.replays) != 1 || g.attempts.Load() != 1 {
			t.Errorf("replays %v after %d attempts: %+v", b.replays, g.attempts.Load(), state)
		}
		for _, e := range b.journal[:2] {
			if err := b.Add(sinks.Letter{Event: e, Cause: sinks.CauseRefused, Retry: true}); err != nil {
				t.Fatal(err)
			}
		}
		w.Wake()
		time.Sleep(time.Hour)
		synctest.Wait()
		if g.attempts.Load() != 2 || len(b.sequences(t)) != 2 {
			t.Errorf("letters %v after %d attempts", b.sequences(t), g.attempts.Load())
		}
		g.open.Store(true)
		w.Wake()
		synctest.Wait()
		if state := w.State(); state.Stopped || len(b.replays) != 0 || len(b.sequences(t)) != 0 {
			t.Errorf("replays %v, letters %v: %+v", b.replays, b.sequences(t), state)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
