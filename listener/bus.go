package listener

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// farewell bounds how long a closing bus waits for Spark.
const farewell = 10 * time.Second

// Opener opens the listener bus of a session.
type Opener interface {
	Spark
	Open(ctx context.Context) (Stream, error)
}

// BusOptions are the settings of a Bus that have a default.
type BusOptions struct {
	Session  Session
	AskEvery time.Duration // how often Spark is asked which queries are active; 5 s
	// OnLost is called once for each open bus that is lost for good: taken by
	// another client, removed, or gone with its session. The listeners stay; adding
	// one opens the bus anew.
	OnLost func(error)
	Log    *slog.Logger
}

// Bus is the listener bus of one session, shared by any number of listeners. It
// opens when the first listener is added and closes when the last is removed, as
// Spark's own clients do. Safe for concurrent use.
type Bus struct {
	opener Opener
	opts   BusOptions
	// admission outlives the openings, so that none repeats what another brought.
	admission *Admission

	opening sync.Mutex // one Add or Close at a time

	mu        sync.Mutex
	listeners []*Listener
	running   *running
	calling   bool // a callback is running
}

// running is one opening of the bus.
type running struct {
	stop     context.CancelFunc
	stopping bool          // guarded by Bus.mu
	done     chan struct{} // closed when the stream is closed
}

// NewBus returns a bus that is not open yet.
func NewBus(o Opener, opts BusOptions) *Bus {
	if opts.AskEvery <= 0 {
		opts.AskEvery = 5 * time.Second
	}
	if opts.OnLost == nil {
		opts.OnLost = func(error) {}
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	return &Bus{opener: o, opts: opts, admission: NewAdmission(opts.Session)}
}

// Add adds a listener; the first one opens the bus and waits until it is open.
// On an error nothing is added. A listener that is there already is not added
// twice. It may be called from a callback, but not after Close.
func (b *Bus) Add(ctx context.Context, l *Listener) error {
	if b.join(l) {
		return nil
	}
	b.opening.Lock()
	defer b.opening.Unlock()
	if b.join(l) {
		return nil
	}
	if err := b.settle(ctx); err != nil {
		return err
	}
	stream, err := b.opener.Open(ctx)
	if err != nil {
		return err
	}
	life, stop := context.WithCancel(context.Background())
	r := &running{stop: stop, done: make(chan struct{})}
	b.mu.Lock()
	b.listeners = append(without(b.listeners, l), l)
	b.running = r
	b.mu.Unlock()
	go b.run(life, r, stream)
	return nil
}

// Start runs start, which starts a query of the session and returns Spark's started event of
// it, or nil. Where the bus is open, its listeners are told the event before any other of
// the run. It may be called from a callback.
func (b *Bus) Start(ctx context.Context, start func(context.Context) ([]byte, error)) error {
	b.mu.Lock()
	open := b.running != nil
	b.mu.Unlock()
	if !open {
		_, err := start(ctx)
		return err
	}
	return b.admission.Start(ctx, start)
}

// join adds a listener to a bus that is open; it reports false for one that is
// not, or is closing.
func (b *Bus) join(l *Listener) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running == nil || b.running.stopping {
		return false
	}
	b.listeners = append(without(b.listeners, l), l)
	return true
}

// Remove removes a listener, which gets no further event after a callback that is
// running; without listeners the bus closes in the background. It may be called
// from a callback.
func (b *Bus) Remove(l *Listener) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners = without(b.listeners, l)
	b.leaveUnheard()
}

// leaveUnheard closes a bus that nobody listens to. A callback that is running may still add a
// listener in place of the last one.
func (b *Bus) leaveUnheard() {
	if len(b.listeners) == 0 && b.running != nil && !b.calling {
		b.running.end()
	}
}

func (r *running) end() {
	r.stopping = true
	r.stop()
}

// Close removes all listeners, closes the bus and waits until it is closed, or
// ctx ends. It must not be called from a callback.
func (b *Bus) Close(ctx context.Context) error {
	b.opening.Lock()
	defer b.opening.Unlock()
	b.mu.Lock()
	b.listeners = nil
	b.mu.Unlock()
	return b.settle(ctx)
}

// settle stops what is running and waits for it, so that two openings of one
// session never race for its slot.
func (b *Bus) settle(ctx context.Context) error {
	b.mu.Lock()
	r := b.running
	if r != nil {
		r.end()
	}
	b.mu.Unlock()
	if r == nil {
		return nil
	}
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run carries one opening to its end.
func (b *Bus) run(ctx context.Context, r *running, stream Stream) {
	defer close(r.done)
	defer r.stop()
	feed := &Feed{
		Stream: stream, Spark: b.opener, Admission: b.admission, NewBus: true,
		Deliver: b.dispatch, AskEvery: b.opts.AskEvery, Log: b.opts.Log,
	}
	err := feed.Run(ctx)
	lost := ctx.Err() == nil
	if !lost {
		err = b.leave(feed)
	}
	if closeErr := stream.Close(); closeErr != nil {
		err = errors.Join(err, closeErr)
	}
	b.mu.Lock()
	b.running = nil
	b.mu.Unlock()
	switch {
	case lost:
		b.opts.OnLost(err)
	case err != nil:
		b.opts.Log.Warn("the bus was not closed cleanly", "err", err)
	}
}

// leave frees the slot; what Spark still holds goes to nobody, since nobody
// listens any more.
func (b *Bus) leave(feed *Feed) error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	return feed.Drain(ctx)
}

// dispatch calls the listeners, one event after the other.
func (b *Bus) dispatch(_ context.Context, events []Event) error {
	for _, e := range events {
		b.mu.Lock()
		listeners := slices.Clone(b.listeners)
		b.mu.Unlock()
		for _, l := range listeners {
			b.call(l, e)
		}
	}
	return nil
}

func (b *Bus) call(l *Listener, e Event) {
	b.within(true)
	defer b.within(false)
	defer func() {
		if p := recover(); p != nil {
			b.opts.Log.Error("a listener panicked", "event", e.ID, "panic", p)
		}
	}()
	if f := l.callback(e.Kind); f != nil {
		f(e)
	}
}

// within notes whether a callback is running.
func (b *Bus) within(callback bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calling = callback
	b.leaveUnheard()
}

func without(listeners []*Listener, l *Listener) []*Listener {
	return slices.DeleteFunc(slices.Clone(listeners), func(x *Listener) bool { return x == l })
}
