package listener

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Feed carries the events of one open stream: read, admit, deliver, and only then
// let Spark forget. It is the one loop behind the bridge and behind Bus.
type Feed struct {
	Stream    Stream
	Asker     Asker
	Admission *Admission
	// Deliver takes the admitted events in order. When it returns nil they are
	// kept, and Spark may forget them; an error ends the feed.
	Deliver func(ctx context.Context, events []Event) error
	// AskEvery is how often Spark is asked which queries are active, also while
	// the stream is silent. It must be positive.
	AskEvery time.Duration
	Log      *slog.Logger

	askFailed bool
}

// Run carries events until the stream is over or ctx ends, and returns why. It
// leaves the stream open.
func (f *Feed) Run(ctx context.Context) error {
	var nextAsk time.Time
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !time.Now().Before(nextAsk) {
			if err := f.deliver(ctx, f.ask(ctx)); err != nil {
				return err
			}
			nextAsk = time.Now().Add(f.AskEvery)
		}
		if err := f.step(ctx, nextAsk); err != nil {
			return err
		}
	}
}

// Drain ends the stream and carries what it still holds. ctx bounds it.
func (f *Feed) Drain(ctx context.Context) error {
	if err := f.Stream.Finish(ctx); err != nil {
		return fmt.Errorf("finish stream: %w", err)
	}
	for {
		d, err := f.Stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("drain stream: %w", err)
		}
		if err := f.carry(ctx, d); err != nil {
			return err
		}
	}
}

// step waits for one delivery, at most until the time to ask again.
func (f *Feed) step(ctx context.Context, until time.Time) error {
	waiting, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	d, err := f.Stream.Next(waiting)
	if err != nil {
		if waiting.Err() != nil && errors.Is(err, waiting.Err()) {
			return ctx.Err()
		}
		return err
	}
	return f.carry(ctx, d)
}

// carry admits and delivers one delivery.
func (f *Feed) carry(ctx context.Context, d Delivery) error {
	events, unseen := f.Admission.read(d)
	var out []Event
	if unseen {
		out = f.ask(ctx)
	}
	out = append(out, f.Admission.admit(events)...)
	if err := f.deliver(ctx, out); err != nil {
		return err
	}
	return f.Stream.Done(ctx, d)
}

func (f *Feed) deliver(ctx context.Context, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	return f.Deliver(ctx, events)
}

// ask asks which queries are active and returns the starts that this reveals. No
// answer leaves the matter open; it is asked again.
func (f *Feed) ask(ctx context.Context) []Event {
	queries, err := f.Asker.Active(ctx)
	if err == nil {
		f.askFailed = false
		return f.Admission.active(queries)
	}
	if ctx.Err() == nil && !f.askFailed {
		f.Log.Warn("spark does not answer which queries are active; names and starts may come late", "err", err)
	}
	f.askFailed = true
	return nil
}
