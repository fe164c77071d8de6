package listener

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"
)

const (
	// askPatience bounds one question; the stream is not read meanwhile.
	askPatience = 10 * time.Second
	// askPause is for how long nothing is asked after a question without answer.
	askPause = 5 * time.Second
)

// Feed carries the events of one session: from the open stream of its bus by Run,
// or from the answers of Spark by Poll. Both admit, repair and deliver in the same
// way, so that one can follow the other without a loss or a repeat.
type Feed struct {
	// Stream is the open bus; Poll needs none.
	Stream    Stream
	Spark     Spark
	Admission *Admission
	// Deliver takes the admitted events in order. When it returns nil they are
	// kept, and Spark may forget them; an error ends the feed.
	Deliver func(ctx context.Context, events []Event) error
	// AskEvery is how often Spark is asked which queries are active, also while
	// the stream is silent. It must be positive.
	AskEvery time.Duration
	// NewBus says that the stream is a new bus, on which nothing comes of what
	// happened before: Spark is asked for that.
	NewBus bool
	// Resumed says that the stream reads on where an earlier one stopped. What happened
	// meanwhile lies ready on it, in its order, so Spark is asked only after that.
	Resumed bool
	// DetachAfter ends the feed with ErrDetached when no query has been active for
	// so long; 0 never does.
	DetachAfter time.Duration
	// GapReason is the reason of the gaps that this feed finds; GapNotReceived if
	// it is empty.
	GapReason string
	Log       *slog.Logger

	// Asked is called when all has been asked for that may have been missing when the
	// feed began; nil is allowed.
	Asked func()

	askFailed bool
	askAgain  time.Time
	idleSince time.Time // first answer without an active query, zero while there is one
	looked    bool      // the active queries have been answered once
	caughtUp  bool      // Asked was called
}

// ErrDetached says that no query has been active for as long as was agreed.
var ErrDetached = errors.New("no query is active")

// Run carries events until the stream is over or ctx ends, and returns why. It
// leaves the stream open.
func (f *Feed) Run(ctx context.Context) error {
	f.begin()
	if f.NewBus {
		f.Admission.owe()
	}
	f.looked = f.Resumed && !f.NewBus
	var nextAsk time.Time
	if f.Resumed {
		nextAsk = time.Now().Add(f.AskEvery)
	}
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

// begin sets what holds for this feed alone.
func (f *Feed) begin() {
	f.Admission.mu.Lock()
	defer f.Admission.mu.Unlock()
	f.Admission.gapReason = f.GapReason
	if f.GapReason == "" {
		f.Admission.gapReason = GapNotReceived
	}
}

// ErrNotKept says that events were admitted but could not be delivered, so that
// nothing may follow them.
var ErrNotKept = errors.New("admitted events could not be delivered; spark still holds them")

// Drain ends the stream and carries what it still holds. ctx bounds it. After a
// delivery that was given up it returns ErrNotKept and leaves the stream as it is,
// since ending it would make Spark forget.
func (f *Feed) Drain(ctx context.Context) error {
	if f.Admission.Torn() {
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

// step waits for one delivery, or for a start by this process, at most until the time to ask again.
func (f *Feed) step(ctx context.Context, until time.Time) error {
	timed, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	waiting, done := f.Admission.starts.waiting(timed)
	defer done()
	d, err := f.Stream.Next(waiting)
	if err != nil {
		if waiting.Err() != nil && (errors.Is(err, waiting.Err()) || errors.Is(err, timed.Err())) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return f.settle(ctx, nothing)
		}
		return err
	}
	return f.carry(ctx, d)
}

// carry admits and delivers one delivery, and lets Spark forget it.
func (f *Feed) carry(ctx context.Context, d Delivery) error {
	f.hold(ctx, d)
	if err := f.settle(ctx, func() []Event { return f.take(ctx, d) }); err != nil {
		return err
	}
	return f.Stream.Done(ctx, d)
}

// settle delivers what admit admits. Nobody sees the marks between the two; after
// a failure they are ahead of what is kept, and the admission is of no more use.
func (f *Feed) settle(ctx context.Context, admit func() []Event) error {
	f.Admission.mu.Lock()
	defer f.Admission.mu.Unlock()
	events := append(f.begun(ctx), admit()...)
	if len(events) == 0 {
		return nil
	}
	if err := f.Deliver(ctx, events); err != nil {
		f.Admission.torn = true
		return err
	}
	return nil
}

// nothing admits nothing but the starts that every settling admits.
func nothing() []Event { return nil }

// take admits the events of a delivery, each after what belongs before it.
func (f *Feed) take(ctx context.Context, d Delivery) []Event {
	events := f.Admission.read(d)
	var out []Event
	if f.Admission.unseen(events) {
		queries, _ := f.active(ctx) // no answer leaves the names open
		f.Admission.names(queries)
	}
	for i := range events {
		out = append(out, f.takeOne(ctx, events[i])...)
	}
	return out
}

// takeOne asks Spark for what the event reveals to be missing, and admits that
// before it.
func (f *Feed) takeOne(ctx context.Context, e Event) []Event {
	a := f.Admission
	what, ask := a.reveals(e)
	if !ask {
		return a.admitOne(e, false)
	}
	first := e.Kind == KindProgress && a.marks.Batch(e.RunID) < 0
	out := f.succeed(ctx, a.query(e))
	told := f.recount(ctx, a.query(e), OriginBackfill, what)
	out = append(out, a.startedAs(e)...)
	out = append(out, a.relive(e.RunID, told, &e)...)
	out = append(out, a.admitOne(e, told.answered)...)
	if !told.answered {
		a.owes(e.RunID, first)
	}
	return out
}
