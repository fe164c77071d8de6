package sinktest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// feed is a journal of the suite's own: events handed out a few at a time, and
// the cursor that comes back.
type feed struct {
	events []listener.Event
	batch  int           // events per Next
	pace   time.Duration // between two of them

	mu    sync.Mutex
	saved uint64
}

// Next is sinks.Source.
func (f *feed) Next(ctx context.Context, _, _ int) ([]listener.Event, error) {
	if len(f.events) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	pause(ctx, f.pace)
	if ctx.Err() != nil {
		return nil, ctx.Err() // and nothing is lost
	}
	n := min(f.batch, len(f.events))
	out := f.events[:n]
	f.events = f.events[n:]
	return out, nil
}

// Save is sinks.Cursor.
func (f *feed) Save(next uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saved = next
	return nil
}

func (f *feed) cursor() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.saved
}

// run starts a worker on the feed, with short waits. stop ends it and waits.
func (f *feed) run(t testing.TB, sink sinks.Sink) (w *sinks.Worker, stop func()) {
	w = sinks.NewWorker(sinks.Options{
		Name: "conformance", Sink: sink, Source: f, Cursor: f,
		Retry: sinks.Retry{Initial: 20 * time.Millisecond, Max: 200 * time.Millisecond},
		Log:   slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil {
			t.Errorf("worker ended: %v", err)
		}
	})
	return w, func() { cancel(); running.Wait() }
}
