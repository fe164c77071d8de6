package sinktest

import (
	"context"
	"testing"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// disturb runs a worker over events and breaks its destination three times in
// the middle of them (once, from the beginning, when harm is nil). Each time it
// waits until the worker has noticed before it mends.
func (h Harness) disturb(t testing.TB, sink sinks.Sink, events []listener.Event, harm, mend func(testing.TB)) {
	t.Helper()
	f := &feed{events: events, batch: 4, pace: 4 * time.Millisecond}
	w, stop := f.run(t, sink)
	defer stop()
	for _, part := range []int{8, 4, 2} {
		if harm != nil {
			until(t, "events are delivered", func() bool {
				s := w.State()
				return s.Delivered >= uint64(len(events)/part) && s.Err == nil
			})
			harm(t)
		}
		until(t, "the worker notices", func() bool { return w.State().Err != nil })
		if at := f.cursor(); at > w.State().Next {
			t.Fatalf("cursor %d leads: the first event that is not acknowledged is %d", at, w.State().Next)
		}
		mend(t)
		if harm == nil {
			break
		}
	}
	defer func() {
		if t.Failed() {
			t.Logf("the worker at the end: %+v", w.State())
		}
	}()
	until(t, "all is delivered", func() bool { return w.State().Delivered == uint64(len(events)) })
	stop()
	if at, want := f.cursor(), uint64(len(events)+1); at != want {
		t.Errorf("cursor is %d at the end, want %d", at, want)
	}
	if h.Forgets {
		h.expectLater(t, sink, events)
	} else {
		h.expect(t, events)
	}
}

// expectLater is for destinations that forget: after the trouble events arrive
// again, and what has arrived is in order.
func (h Harness) expectLater(t testing.TB, sink sinks.Sink, events []listener.Event) {
	t.Helper()
	last := events[len(events)-1:]
	until(t, "events arrive again", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, _ = sink.Deliver(ctx, last) // may fail for a moment
		return len(missing(last, h.received(t))) == 0
	})
	h.check(t, events, h.received(t))
}

// until waits for a condition.
func until(t testing.TB, what string, met func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for !met() {
		if ctx.Err() != nil {
			t.Fatalf("waited %s until %s", patience, what)
		}
		pause(ctx, 5*time.Millisecond)
	}
}
