package bridge

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// receiver is a destination in memory: what it does not refuse, it has got.
type receiver struct {
	refuse func(e listener.Event) error // nil takes all

	mu    sync.Mutex
	got   []listener.Event
	asked []uint64 // the sequences that were sent, refused ones among them
}

func (r *receiver) Deliver(_ context.Context, events []listener.Event) (int, error) {
	for i, e := range events {
		var err error
		if r.refuse != nil {
			err = r.refuse(e) // which may take its time
		}
		r.note(e, err == nil)
		if err != nil {
			return i, err
		}
	}
	return len(events), nil
}

func (r *receiver) note(e listener.Event, taken bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, e.Sequence)
	if taken {
		r.got = append(r.got, e)
	}
}

func (*receiver) Check(context.Context, []string) []sinks.Finding { return nil }

func (*receiver) Close() error { return nil }

// ids are those of what it has got, in order.
func (r *receiver) ids() (ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.got {
		ids = append(ids, e.ID)
	}
	return ids
}

// deliverTo runs a sink on a journal until stop is called.
func deliverTo(t *testing.T, j *journal.Journal, cfg configs.Sink, to *receiver, log *lines) (o *outlet, stop func()) {
	t.Helper()
	o, err := openOutlet(cfg, to, j, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- o.run(ctx) }()
	return o, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}
