package sinks_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

var errDown = errors.New("connection refused")

// fickle is a destination that works or not.
type fickle struct{ down atomic.Bool }

func (f *fickle) deliver(_ context.Context, events []listener.Event) (int, error) {
	if f.down.Load() {
		return 0, errDown
	}
	return len(events), nil
}

// The last events have expired while the destination was down. That it works again shows
// with a letter that goes through.
func TestARetryThatGoesThroughEndsTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b := &fickle{}, &box{}
		f.down.Store(true)
		s := &script{deliver: f.deliver, fed: make(chan any, 1)}
		s.fed <- lanes(1, 2)
		w, stop := s.run(t, b, expiring)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if state := w.State(); !errors.Is(state.Err, errDown) || state.Buried != 2 {
			t.Fatalf("state %+v", state)
		}
		f.down.Store(false)
		b.retry(t)
		w.Wake()
		synctest.Wait()
		if state := w.State(); state.Err != nil || state.Failures != 0 || !state.Since.IsZero() || state.Delivered != 2 {
			t.Errorf("state %+v", state)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// That the dead letters have room again says nothing of a destination that is down.
func TestRoomForLettersDoesNotHideAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, b, began := &fickle{}, &box{max: 1}, time.Now()
		f.down.Store(true)
		s := &script{deliver: f.deliver, fed: make(chan any, 1)}
		s.fed <- lanes(1, 2)
		w, stop := s.run(t, b, expiring)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if state := w.State(); !errors.Is(state.Err, sinks.ErrLettersFull) || state.Since.Equal(began) {
			t.Fatalf("state %+v", state)
		}
		b.bound(10)
		time.Sleep(time.Minute)
		synctest.Wait()
		if state := w.State(); !errors.Is(state.Err, errDown) || !state.Since.Equal(began) || state.Buried != 2 {
			t.Errorf("state %+v", state)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A query that was set aside is the first to go through after an outage: it is over, and
// whoever fails now fails alone.
func TestATrialThatGoesThroughEndsTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q0, q1 atomic.Pointer[error]
		hangs := atomic.Bool{}
		s := &script{fed: make(chan any, 10), deliver: func(ctx context.Context, events []listener.Event) (int, error) {
			fails := map[string]*atomic.Pointer[error]{"q0": &q0, "q1": &q1}[events[0].QueryID]
			if events[0].QueryID == "q1" && hangs.Load() {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			if err := fails.Load(); err != nil {
				return 0, *err
			}
			return len(events), nil
		}}
		down, later := errDown, error(&sinks.RetryAfterError{After: 30 * time.Minute, Err: errDown})
		q0.Store(&down)
		s.fed <- lanes(2, 1) // q0
		s.fed <- lanes(2, 2)[1:]
		w, stop := s.run(t, &box{}, nil)
		time.Sleep(10 * time.Minute)
		if state := w.State(); state.Aside != 1 || state.Err != nil || state.Delivered != 1 {
			t.Fatalf("state %+v", state)
		}
		q1.Store(&later)
		s.fed <- lanes(2, 4)[3:]
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if state := w.State(); !errors.Is(state.Err, errDown) {
			t.Fatalf("state %+v", state)
		}
		q0.Store(nil)
		hangs.Store(true)
		time.Sleep(time.Hour)
		synctest.Wait()
		if state := w.State(); state.Err != nil || state.Delivered != 2 || state.Aside != 1 {
			t.Errorf("state %+v, want q0 delivered and q1 aside", state)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// What is settled need not be named as lost; what waits, or was not read, must be.
func TestSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := lanes(2, 8) // q0: 1 3 5 7
		all[7].Kind = listener.KindIdle
		s := &script{fed: make(chan any, 10), deliver: func(_ context.Context, events []listener.Event) (int, error) {
			for i := range events {
				switch events[i].Sequence {
				case 4:
					return i, sinks.Permanent(errors.New("400"))
				case 5:
					return i, errPoison
				}
			}
			return len(events), nil
		}}
		s.fed <- all
		s.fed <- &sinks.LostError{From: 9, To: 11}
		w, stop := s.run(t, &box{}, func(o *sinks.Options) { o.Match.Kinds = []listener.Kind{listener.KindProgress} })
		done := make(chan struct{})
		go func() { // beside the worker, as retention asks
			defer close(done)
			for range 1000 {
				w.Settled(3)
				time.Sleep(time.Millisecond)
			}
		}()
		time.Sleep(10 * time.Minute)
		<-done
		for sequence, want := range map[uint64]bool{
			1: true, 2: true, 3: true, 6: true, // delivered
			4: true,            // a dead letter
			5: false, 7: false, // it fails alone, and what waits behind it
			8:  true, // not wanted
			10: true, // lost
			12: false,
		} {
			if got := w.Settled(sequence); got != want {
				t.Errorf("settled %d: %t", sequence, got)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}
