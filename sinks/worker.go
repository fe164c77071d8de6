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
	// What it returned once it does not return again. When ctx ends first it returns
	// the error of ctx and loses nothing. A *LostError says that events are gone;
	// Next may be called again and goes on behind them. Any other error ends the
	// worker.
	Next(ctx context.Context, maxEvents, maxBytes int) ([]listener.Event, error)
}

// Cursor keeps how far a sink has come, over restarts.
type Cursor interface {
	// Save stores the sequence of the first event that is not settled: neither
	// acknowledged, nor unwanted, nor among the dead letters. It may be called beside
	// Source.Next.
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

// Options are the parts of a Worker. Name, Sink, Source, Cursor and Log must be set.
type Options struct {
	Name   string // of the sink, for logs
	Sink   Sink
	Source Source
	Cursor Cursor
	Retry  Retry
	Log    *slog.Logger

	// Match is what the sink wants; the zero value wants all.
	Match Match
	// ProgressEvery lets at most one progress event of a query through in each
	// period of that length; zero lets all through.
	ProgressEvery time.Duration
	// MaxAge is the age above which an event is not worth sending any more, counted
	// from when the journal took it; zero is none. Replays know no age.
	MaxAge time.Duration
	// GiveUp is how long one event may fail while others go through; zero is for ever.
	GiveUp time.Duration
	// Letters keeps what is not delivered. Without it nothing is ever left out: a
	// refusal is tried again like any failure.
	Letters Letters
	// Replays are asked for at the start and when Wake is called; nil has none.
	Replays Replays
}

// State is what a Worker is doing, as it was at one moment.
type State struct {
	// Next is the sequence of the first event that is not settled, 0 as long as
	// nothing was. The stored cursor may be a little behind.
	Next uint64
	// Read is the sequence after the last event that was read.
	Read uint64
	// Delivered counts the events acknowledged since the start, Buried those that
	// became dead letters.
	Delivered, Buried uint64
	// Held is how many events wait for the end of their period (ProgressEvery), Aside
	// how many wait behind an event that fails alone.
	// Open is how many were read and are not settled, these included.
	Held, Aside, Open int
	// Err is the last failure, nil while deliveries succeed. Since then it has
	// failed Failures times in a row. Stopped says that nothing is tried any more, see
	// StoppedError.
	Err      error
	Since    time.Time
	Failures int
	Stopped  bool
	// Replay is the id of the replay that is under way, empty for none.
	Replay string
}

// Worker drives one sink: next events, deliver until acknowledged, move the
// cursor. It never gives up on a destination that does not ask for that itself, and
// skips no event but into the dead letters: one that the destination refuses, that
// fails alone for too long, or that is too old.
type Worker struct {
	o       Options
	backoff *backOff
	cursor  *cursorKeeper
	outage  outage
	apart   outage // of events that fail alone
	room    outage // of dead letters that cannot be stored
	waker   waker
	ledger  ledger // of its own way through the journal
	stopped bool
	again   time.Time // when to look for errands unasked; zero is not at all
	log     *slog.Logger

	mu    sync.Mutex
	state State
}

// NewWorker makes a worker; Run starts it.
func NewWorker(o Options) *Worker {
	log := o.Log.With("sink", o.Name)
	w := &Worker{
		o:       o,
		backoff: newBackOff(o.Retry),
		cursor:  newCursorKeeper(o.Cursor, log),
		outage:  outage{log: log, step: "deliver"},
		apart:   outage{log: log, step: "deliver one event while others go through"},
		room:    outage{log: log, step: "store dead letter"},
		log:     log,
	}
	w.waker.wake() // there may be something to do from before
	return w
}

// State returns what the worker is doing.
func (w *Worker) State() State {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state
}

// Settled says whether nothing more is to be done for an event: it was delivered, is not
// wanted, or is among the dead letters. It is false for one that was not read.
func (w *Worker) Settled(sequence uint64) bool { return w.ledger.settled(sequence) }

// Wake makes the worker look for replays, and for dead letters that are to be tried
// again.
func (w *Worker) Wake() { w.waker.wake() }

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

// carry goes through the source, and does between two batches what was asked for.
func (w *Worker) carry(ctx context.Context) error {
	p := newPass(w, w.o.Source, &w.ledger)
	p.move = func(next uint64) {
		w.note(func(s *State) { s.Next = next })
		w.cursor.move(next)
	}
	if err := p.skipBuried(); err != nil {
		return fmt.Errorf("read dead letters of sink %s: %w", w.o.Name, err)
	}
	for ctx.Err() == nil {
		switch {
		case w.waker.take():
			w.resume()
			w.errands(ctx)
		case w.isDue() && !w.stopped:
			w.errands(ctx)
		}
		if w.stopped {
			w.rest(ctx)
			continue
		}
		if _, err := p.turn(ctx); err != nil {
			return fmt.Errorf("read events for sink %s: %w", w.o.Name, err)
		}
	}
	return nil
}

// note changes the state.
func (w *Worker) note(change func(*State)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.state)
}

// attempt calls the sink once, and holds it to its contract: a wrong count must
// never move the cursor over what was not acknowledged, and a refusal is about the
// event behind those, so there has to be one.
func (w *Worker) attempt(ctx context.Context, events []listener.Event) (int, error) {
	acked, err := w.o.Sink.Deliver(ctx, events)
	if acked < 0 || acked > len(events) || (err == nil) != (acked == len(events)) {
		text := "no error"
		if err != nil {
			text = err.Error() // what it says of an event may be of another
		}
		return 0, fmt.Errorf("sink acknowledged %d of %d events, with %s: %w", acked, len(events), text, errContract)
	}
	return acked, err
}

var errContract = errors.New("count does not fit, nothing is taken as delivered")

// failed notes a failure and returns how long to wait before the next attempt.
func (w *Worker) failed(err error, waiting *listener.Event, wait time.Duration) time.Duration {
	wait = max(wait, askedFor(err))
	w.outage.fail(err, "waiting_from", waiting.Sequence, "retry_in", wait)
	w.show()
	return wait
}

// healthy notes that the destination has answered as it should.
func (w *Worker) healthy() {
	w.backoff.success()
	if delivers, stores := w.outage.over(), w.room.over(); delivers || stores {
		w.show()
	}
}

// show tells what fails: the dead letters before the destination, since they are what
// is waited for. A worker that has stopped has said why.
func (w *Worker) show() {
	if w.stopped {
		return
	}
	fails := &w.outage
	if w.room.count > 0 {
		fails = &w.room
	}
	w.note(func(s *State) { s.Err, s.Since, s.Failures = fails.err, fails.since, fails.count })
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
