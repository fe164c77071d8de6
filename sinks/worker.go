package sinks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sparkbridge/listener"
)

// The bounds of one batch: large enough that the destination's round trip is
// shared by many, small enough that a batch is never a burden.
const (
	maxEvents = 512
	maxBytes  = 4 << 20
)

// Source hands out events in the order of their sequence, which grows but may
// have holes.
type Source interface {
	// Next blocks until there are events and returns what is there, at least one
	// event and otherwise no more than maxEvents and about maxBytes of payload.
	// What it returned once it does not return again. A *LostError says that
	// events are gone; Next may be called again and goes on behind them. Any other
	// error ends the worker.
	Next(ctx context.Context, maxEvents, maxBytes int) ([]listener.Event, error)
}

// Cursor keeps how far a sink has come, over restarts.
type Cursor interface {
	// Save stores the sequence of the first event that is not known to be
	// acknowledged. It may be called beside Source.Next.
	Save(next uint64) error
}

// LostError says that events were deleted by retention before the sink got them.
type LostError struct {
	From, To uint64 // sequences, both inclusive
}

// Error names the range.
func (e *LostError) Error() string {
	return fmt.Sprintf("events %d to %d were deleted by retention before they were delivered", e.From, e.To)
}

// Options are the parts of a Worker; all but Retry must be set.
type Options struct {
	Name   string // of the sink, for logs
	Sink   Sink
	Source Source
	Cursor Cursor
	Retry  Retry
	Log    *slog.Logger
}

// State is what a Worker is doing, as it was at one moment.
type State struct {
	// Next is the sequence of the first event that is not acknowledged, 0 as
	// long as nothing was. The stored cursor may be a little behind.
	Next uint64
	// Delivered counts the events acknowledged since the start.
	Delivered uint64
	// Err is the last failure, nil while deliveries succeed. Since then it has
	// failed Failures times in a row.
	Err      error
	Since    time.Time
	Failures int
}

// Worker drives one sink: next events, deliver until acknowledged, move the
// cursor. It never gives up on a destination and never skips an event.
type Worker struct {
	name    string
	sink    Sink
	source  Source
	backoff *backOff
	cursor  *cursorKeeper
	outage  outage
	log     *slog.Logger

	mu    sync.Mutex
	state State
}

// NewWorker makes a worker; Run starts it.
func NewWorker(o Options) *Worker {
	log := o.Log.With("sink", o.Name)
	return &Worker{
		name:    o.Name,
		sink:    o.Sink,
		source:  o.Source,
		backoff: newBackOff(o.Retry),
		cursor:  newCursorKeeper(o.Cursor, log),
		outage:  outage{log: log, step: "deliver"},
		log:     log,
	}
}

// State returns what the worker is doing.
func (w *Worker) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// Run delivers until ctx ends, which is no failure: it then returns nil. Before
// it returns, the cursor is saved. It returns an error only when the source can
// not be read; the sink is left open. Run may be called once.
func (w *Worker) Run(ctx context.Context) error {
	// The cursor outlives ctx, to take the last acknowledgement too.
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	var keeper sync.WaitGroup
	keeper.Go(func() { w.cursor.run(keeping) })
	err := w.carry(ctx)
	stop()
	keeper.Wait()
	return err
}

// carry moves events from the source to the sink.
func (w *Worker) carry(ctx context.Context) error {
	for ctx.Err() == nil {
		events, err := w.source.Next(ctx, maxEvents, maxBytes)
		var lost *LostError
		switch {
		case err == nil:
			w.deliver(ctx, events)
		case errors.As(err, &lost):
			w.log.Error("events lost to retention", "from", lost.From, "to", lost.To)
			w.acknowledged(0, lost.To+1)
		case ctx.Err() == nil:
			return fmt.Errorf("read events for sink %s: %w", w.name, err)
		}
	}
	return nil
}

// deliver returns when all events are acknowledged, or ctx has ended.
func (w *Worker) deliver(ctx context.Context, events []listener.Event) {
	for len(events) > 0 && ctx.Err() == nil {
		acked, err := w.attempt(ctx, events)
		if acked > 0 {
			w.acknowledged(acked, events[acked-1].Sequence+1)
		}
		events = events[acked:]
		switch {
		case err == nil:
			w.healthy()
		case ctx.Err() == nil:
			w.pause(ctx, err, events)
		}
	}
}

// attempt calls the sink once, and holds it to its contract: a wrong count must
// never move the cursor over what was not acknowledged.
func (w *Worker) attempt(ctx context.Context, events []listener.Event) (int, error) {
	acked, err := w.sink.Deliver(ctx, events)
	if acked < 0 || acked > len(events) || err == nil && acked != len(events) {
		wrong := fmt.Errorf("sink acknowledged %d of %d events: %w", acked, len(events), errContract)
		return 0, errors.Join(wrong, err)
	}
	return acked, err
}

var errContract = errors.New("count does not fit, nothing is taken as delivered")

// pause notes a failure and waits for the time of the next attempt.
func (w *Worker) pause(ctx context.Context, err error, waiting []listener.Event) {
	wait := max(w.backoff.next(), askedFor(err))
	w.outage.fail(err, "waiting_from", waiting[0].Sequence, "retry_in", wait)
	w.mu.Lock()
	w.state.Err, w.state.Since, w.state.Failures = err, w.outage.since, w.outage.count
	w.mu.Unlock()
	sleep(ctx, wait)
}

func (w *Worker) healthy() {
	w.backoff.success()
	if !w.outage.over() {
		return
	}
	w.mu.Lock()
	w.state.Err, w.state.Since, w.state.Failures = nil, time.Time{}, 0
	w.mu.Unlock()
}

// acknowledged moves the cursor to next after count more events.
func (w *Worker) acknowledged(count int, next uint64) {
	w.mu.Lock()
	w.state.Delivered += uint64(count)
	w.state.Next = next
	w.mu.Unlock()
	w.cursor.move(next)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
