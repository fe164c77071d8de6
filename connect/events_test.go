package connect

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/connect/connecttest"
	"sparkbridge/listener"
)

func (w *world) tell(run string, batch int) {
	w.job.Progress(fmt.Sprintf(`{"id":"id-%s","runId":"%s","name":null,"timestamp":"2026-01-01T00:00:00.000Z","batchId":%d,"durationMs":{"addBatch":1}}`, run, run, batch))
}

// free checks that nobody holds the bus of the session, once a loop has let go of it.
func (w *world) free(after string) {
	w.t.Helper()
	synctest.Wait()
	if op, taken := w.job.Holder(); taken {
		w.t.Errorf("%s: operation %q holds the bus", after, op)
	}
}

// A loop opens the bus when it begins and frees it when it is left, so that the next may begin.
func TestEventsUntilTheLoopIsLeft(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		events := w.s.Streams().Events(t.Context())
		w.free("without a loop")
		for round := range 2 {
			run := fmt.Sprintf("run-%d", round)
			time.AfterFunc(time.Second, func() { w.tell(run, 0); w.tell(run, 1); w.tell(run, 2) })
			var ids []string
			for e, err := range events {
				if err != nil {
					t.Fatal(err)
				}
				if ids = append(ids, e.ID); len(ids) == 3 {
					break
				}
			}
			if want := []string{run + ":started:inferred", run + ":progress:0", run + ":progress:1"}; fmt.Sprint(ids) != fmt.Sprint(want) {
				t.Errorf("events %v, want %v", ids, want)
			}
		}
		time.Sleep(time.Minute)
		w.free("after a break")
	})
}

func TestEventsOfAStartOfOurs(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		begun := make(chan *StreamingQuery, 1)
		time.AfterFunc(time.Second, func() {
			q, err := w.writer().Start(t.Context())
			w.started(q, err)
			begun <- q
		})
		for e, err := range w.s.Streams().Events(t.Context()) {
			q := <-begun
			if err != nil || e.ID != q.RunID()+":started" || e.Origin != listener.OriginClient || string(e.Payload) != string(q.Started()) {
				t.Errorf("the first event is %+v, %v", e, err)
			}
			break
		}
		time.Sleep(time.Minute)
		w.free("after a break")
	})
}

func TestEventsEndWithTheirContext(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		w.wantEnd(w.s.Streams().Events(ctx), context.DeadlineExceeded)
		time.Sleep(time.Minute)
		w.free("after the end of ctx")
	})
}

func TestEventsEndWithTheBus(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		time.AfterFunc(time.Minute, w.job.RemoveBus)
		w.wantEnd(w.s.Streams().Events(t.Context()), ErrBusRemoved)
		w.free("after a removal")

		w.job.HoldBus()
		w.wantEnd(w.s.Streams().Events(t.Context()), ErrBusTaken)
		if _, taken := w.job.Holder(); !taken {
			t.Error("the bus of another was taken away")
		}
	})
}

// A session may be closed while a loop waits, and from within one: what follows is not
// waited for.
func TestEventsEndWithTheSession(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		closing := func(s *Session) {
			if err := s.Close(); err != nil {
				t.Errorf("close session: %v", err)
			}
		}
		waiting := w.session()
		time.AfterFunc(time.Minute, func() { closing(waiting) })
		w.wantEnd(waiting.Streams().Events(t.Context()), ErrSessionClosed)
		w.free("after the session was closed")

		busy := w.session()
		time.AfterFunc(time.Second, func() { w.tell("run", 0); w.tell("run", 1); w.tell("run", 2) })
		var last error
		for _, err := range busy.Streams().Events(t.Context()) {
			if last = err; err == nil {
				time.Sleep(time.Second) // the next event waits for us
				began := time.Now()
				if closing(busy); time.Since(began) >= tidyTime {
					t.Errorf("closing took %s", time.Since(began))
				}
			}
		}
		if !errors.Is(last, ErrSessionClosed) {
			t.Errorf("the last error is %v", last)
		}
		w.free("after a loop has closed its session")
	})
}

func TestAPanicInALoopFreesTheBus(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		time.AfterFunc(time.Second, func() { w.tell("run", 0) })
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the panic is gone")
				}
			}()
			for range w.s.Streams().Events(t.Context()) {
				panic("oops")
			}
		}()
		time.Sleep(time.Minute)
		w.free("after a panic")
	})
}

// wantEnd ranges to the end of the events, which is one error.
func (w *world) wantEnd(events func(func(listener.Event, error) bool), want error) {
	w.t.Helper()
	var last error
	for e, err := range events {
		if err == nil || last != nil {
			w.t.Fatalf("event %s, %v after %v", e.ID, err, last)
		}
		last = err
	}
	if !errors.Is(last, want) {
		w.t.Errorf("the last error is %v, want %v", last, want)
	}
}
