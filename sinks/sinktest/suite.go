package sinktest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sparkbridge/listener"
	"sparkbridge/sinks"
	"sparkbridge/sinks/redact"
)

// patience bounds every wait of the suite; it is generous, as servers share
// their machine with other tests.
const patience = 90 * time.Second

// Run tries a sink on its real destination, case by case; open is called for
// each and returns one that is empty and healthy.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(testing.TB, Harness)
	}{
		{"order per query", orderPerQuery},
		{"repeats are the same", repeatsAreTheSame},
		{"odd names and payloads", oddContent},
		{"large events", largeEvents},
		{"masked events", maskedEvents},
		{"down at start", downAtStart},
		{"restarts within a stream", restarts},
		{"hang within a stream", hang},
		{"slow", slow},
		{"cancel", cancelReturns},
		{"close", closeLeavesNothing},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t)) })
	}
}

// open makes a sink that is closed with the test, twice, as both must be fine.
func (h Harness) open(t testing.TB) sinks.Sink {
	t.Helper()
	sink := h.New(t)
	t.Cleanup(func() {
		for range 2 {
			if err := sink.Close(); err != nil {
				t.Errorf("close sink: %v", err)
			}
		}
	})
	return sink
}

// deliver hands events to a healthy destination. An attempt that fails is made
// again, as a worker would: on a busy machine a short time-out may run out.
func deliver(t testing.TB, sink sinks.Sink, events []listener.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(events) > 0 {
		n := min(len(events), 100)
		acked, err := sink.Deliver(ctx, events[:n])
		switch {
		case ctx.Err() != nil || err == nil && acked != n:
			t.Fatalf("deliver to a healthy destination: %d of %d acknowledged: %v", acked, n, err)
		case err != nil:
			t.Logf("deliver to a healthy destination, will try again: %v", err)
			pause(ctx, 100*time.Millisecond)
		}
		events = events[acked:]
	}
}

func orderPerQuery(t testing.TB, h Harness) {
	events := stream(7, 700)
	deliver(t, h.open(t), events)
	h.expect(t, events)
}

func repeatsAreTheSame(t testing.TB, h Harness) {
	events := stream(3, 30)
	sink := h.open(t)
	deliver(t, sink, events)
	deliver(t, sink, events)
	deliver(t, h.open(t), events[10:]) // as after a crash of the bridge
	h.expect(t, events)
}

func oddContent(t testing.TB, h Harness) {
	events := odd()
	deliver(t, h.open(t), events)
	h.expect(t, events)
}

func largeEvents(t testing.TB, h Harness) {
	events := numbered([]listener.Event{failure(900_000), failure(5_000_000), failure(2_000)})
	deliver(t, h.open(t), events)
	h.expect(t, events)
}

// maskedEvents holds that what was masked arrives so and marked, also where the
// destination makes the sink cut: what is cut is what was masked.
func maskedEvents(t testing.TB, h Harness) {
	events := numbered([]listener.Event{confession(0), confession(3_000_000), failure(2_000)})
	deliver(t, redact.Sink(h.open(t)), events)
	masked := slices.Clone(events)
	for i := range masked[:2] {
		masked[i].Redacted = true
		masked[i].Payload = bytes.ReplaceAll(masked[i].Payload, []byte(confessed), []byte(redact.Mask))
	}
	h.expect(t, masked)
	for _, m := range h.received(t) {
		if bytes.Contains(m.Payload, []byte(confessed[:8])) {
			t.Errorf("event %s: a credential arrived: %.300q", m.ID(), m.Payload)
		}
	}
}

// downAtStart also holds the sink to its word: nothing is acknowledged by a
// destination that is not there.
func downAtStart(t testing.TB, h Harness) {
	h.Stop(t)
	sink := h.open(t)
	events := stream(3, 120)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if acked, err := sink.Deliver(ctx, events[:10]); acked != 0 || err == nil || ctx.Err() != nil {
		t.Fatalf("deliver to a stopped server: %d acknowledged, error %v", acked, err)
	}
	h.disturb(t, sink, events, nil, h.Start)
}

func restarts(t testing.TB, h Harness) {
	h.disturb(t, h.open(t), stream(5, 1500), h.Stop, h.Start)
}

func hang(t testing.TB, h Harness) {
	h.disturb(t, h.open(t), stream(5, 1500), h.Freeze, h.Thaw)
}

func slow(t testing.TB, h Harness) {
	if h.Slow == nil {
		t.Skip("this destination cannot be slowed down")
	}
	sink := h.open(t)
	events := stream(4, 40)
	h.Slow(t, 50*time.Millisecond)
	deliver(t, sink, events)
	h.Slow(t, 0)
	h.expect(t, events)
}

// cancelReturns cancels a Deliver that hangs. What it had sent may still arrive;
// the same events delivered again must then be in order all the same.
func cancelReturns(t testing.TB, h Harness) {
	sink := h.open(t)
	events := stream(2, 20)
	deliver(t, sink, events[:4]) // so that there is a connection that hangs
	h.Freeze(t)
	acked := h.cancelled(t, sink, events[4:])
	h.Thaw(t)
	f := &feed{events: events[4+acked:], batch: 100}
	_, stop := f.run(t, sink)
	defer stop()
	h.expect(t, events)
}

// cancelled cancels a Deliver that hangs, and returns how much it says is
// acknowledged. On a busy machine the sink's own time-out may run out before
// Deliver hears of the cancel, with an error that is as right: then it is tried again.
func (h Harness) cancelled(t testing.TB, sink sinks.Sink, events []listener.Event) (acked int) {
	var err error
	for range 5 {
		ctx, cancel := context.WithCancel(t.Context())
		var at time.Time
		time.AfterFunc(100*time.Millisecond, func() { at = time.Now(); cancel() })
		var n int
		n, err = sink.Deliver(ctx, events[acked:])
		acked += n
		<-ctx.Done()
		if took, limit := time.Since(at), cmp.Or(h.CancelWithin, 10*time.Second); took > limit {
			t.Errorf("deliver returned %s after it was cancelled, want at most %s", took, limit)
		}
		if errors.Is(err, context.Canceled) {
			return acked
		}
	}
	t.Errorf("cancelled deliver returned %d, %v; want the error of its context", acked, err)
	return acked
}

func closeLeavesNothing(t testing.TB, h Harness) {
	use := func() {
		sink := h.New(t)
		deliver(t, sink, stream(3, 30))
		for range 2 {
			if err := sink.Close(); err != nil {
				t.Errorf("close sink: %v", err)
			}
		}
	}
	use() // what the server starts for its first client is not the sink's
	present := goleak.IgnoreCurrent()
	use()
	until(t, "nothing of the sink runs any more", func() bool {
		left := goleak.Find(present)
		if left != nil {
			t.Logf("still there: %.1000v", left)
		}
		return left == nil
	})
}
