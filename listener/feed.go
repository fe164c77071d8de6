package listener

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// askPatience bounds one question; the stream is not read meanwhile.
const askPatience = 10 * time.Second

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
			if err := f.look(ctx); err != nil {
				return err
			}
			nextAsk = time.Now().Add(f.AskEvery)
		}
		if err := f.step(ctx, nextAsk); err != nil {
			return err
		}
	}
}

// ErrNotKept says that events were admitted but could not be delivered, so that
// nothing may follow them.
var ErrNotKept = errors.New("admitted events could not be delivered; spark still holds them")

// Drain ends the stream and carries what it still holds. ctx bounds it. After a
// delivery that was given up it returns ErrNotKept and leaves the stream as it is,
// since ending it would make Spark forget.
func (f *Feed) Drain(ctx context.Context) error {
	f.Admission.mu.Lock()
	torn := f.Admission.torn
	f.Admission.mu.Unlock()
	if torn {
		return ErrNotKept
	}
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

// look asks which queries are active, and delivers the starts that this reveals.
func (f *Feed) look(ctx context.Context) error {
	queries := f.ask(ctx)
	f.Admission.mu.Lock()
	defer f.Admission.mu.Unlock()
	return f.deliver(ctx, f.Admission.active(queries))
}

// carry admits and delivers one delivery.
func (f *Feed) carry(ctx context.Context, d Delivery) error {
	events, unseen := f.Admission.read(d)
	var queries []Query
	if unseen {
		queries = f.ask(ctx)
	}
	if err := f.keep(ctx, queries, events); err != nil {
		return err
	}
	return f.Stream.Done(ctx, d)
}

func (f *Feed) keep(ctx context.Context, queries []Query, events []Event) error {
	f.Admission.mu.Lock()
	defer f.Admission.mu.Unlock()
	return f.deliver(ctx, append(f.Admission.active(queries), f.Admission.admit(events)...))
}

// deliver hands admitted events on. The marks have moved over them, so after a
// failure the admission is of no more use.
func (f *Feed) deliver(ctx context.Context, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	if err := f.Deliver(ctx, events); err != nil {
		f.Admission.torn = true
		return err
	}
	return nil
}

// ask asks which queries are active. No answer leaves the matter open; it is
// asked again.
func (f *Feed) ask(ctx context.Context) []Query {
	asking, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	queries, err := f.Asker.Active(asking)
	if err == nil {
		f.askFailed = false
		return queries
	}
	if ctx.Err() == nil && !f.askFailed {
		f.Log.Warn("spark does not answer which queries are active; names and starts may come late", "err", err)
	}
	f.askFailed = true
	return nil
}
