package connect

import (
	"context"
	"iter"
	"sync"

	"sparkbridge/listener"
)

func newStreams(s *Session) *Streams {
	streams := &Streams{session: s, loops: make(map[*loop]struct{})}
	streams.bus = listener.NewBus(opener{s}, listener.BusOptions{
		Session: listener.Session{Source: s.ID(), UserID: s.UserID(), SessionID: s.ID()},
		OnLost:  streams.lost,
		Log:     s.log,
	})
	return streams
}

// opener opens the bus of a session for its listeners.
type opener struct{ *Session }

func (o opener) Open(ctx context.Context) (listener.Stream, error) {
	b, err := o.OpenBus(ctx, BusOptions{})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// AddListener adds a listener to the queries of the session, whoever starts them. The first one
// opens the session's listener bus, of which there is one: ErrBusTaken where another client
// holds it; ErrUnsupported before Spark 4.0. Events of queries that run already come from now on.
// It may be called from a callback.
func (s *Streams) AddListener(ctx context.Context, l *listener.Listener) error {
	return s.session.living(ctx, "add listener", func(ctx context.Context) error { return s.bus.Add(ctx, l) })
}

// RemoveListener removes a listener. Without one, the bus of the session is free again. It may
// be called from a callback.
func (s *Streams) RemoveListener(l *listener.Listener) { s.bus.Remove(l) }

// Events are the events of the queries of the session, in order, each once. The bus is
// opened at the first pull, and freed when the loop ends, however it ends. The last pair
// holds the error that ended the events: that of ctx, why the bus could not be opened or
// was lost, or ErrSessionClosed after Close. Until the loop comes for the next event, Spark
// keeps what follows.
func (s *Streams) Events(ctx context.Context) iter.Seq2[listener.Event, error] {
	return func(yield func(listener.Event, error) bool) {
		events, l := make(chan listener.Event), &loop{over: make(chan struct{})}
		take := func(e listener.Event) {
			select {
			case events <- e:
			case <-l.over:
			}
		}
		all := &listener.Listener{OnQueryStarted: take, OnQueryProgress: take, OnQueryIdle: take, OnQueryTerminated: take, OnOther: take}
		s.follow(l)
		defer s.unfollow(l)
		if err := s.AddListener(ctx, all); err != nil {
			yield(listener.Event{}, err)
			return
		}
		defer s.bus.Remove(all)
		defer l.end(nil)
		for {
			select {
			case e := <-events:
				if !yield(e, nil) {
					return
				}
			case <-l.over:
				yield(listener.Event{}, l.err)
				return
			case <-ctx.Done():
				yield(listener.Event{}, ctx.Err())
				return
			}
		}
	}
}

// loop is a loop over events that goes on until over is closed.
type loop struct {
	once sync.Once
	over chan struct{}
	err  error // why it is over
}

func (l *loop) end(err error) {
	l.once.Do(func() {
		l.err = err
		close(l.over)
	})
}

func (s *Streams) follow(l *loop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loops[l] = struct{}{}
}

func (s *Streams) unfollow(l *loop) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.loops, l)
}

func (s *Streams) endLoops(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.loops {
		l.end(err)
	}
}

// lost ends the loops: their bus is lost.
func (s *Streams) lost(err error) {
	s.session.log.Warn("the listener bus is lost; listeners are told nothing until one is added again", "err", err)
	s.endLoops(err)
}

// unlisten removes all listeners and frees the bus.
func (s *Session) unlisten() error {
	s.mu.Lock()
	streams := s.streams
	s.mu.Unlock()
	if streams == nil {
		return nil
	}
	streams.endLoops(closedHere("read events"))
	ctx, cancel := context.WithTimeout(context.Background(), tidyTime)
	defer cancel()
	return streams.bus.Close(ctx)
}
