package connect

import (
	"context"
	"iter"

	"sparkbridge/listener"
)

func newStreams(s *Session) *Streams {
	streams := &Streams{session: s, loops: make(map[chan error]struct{})}
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
func (s *Streams) AddListener(ctx context.Context, l *listener.Listener) error {
	return s.bus.Add(ctx, l)
}

// RemoveListener removes a listener. Without one, the bus of the session is free again.
func (s *Streams) RemoveListener(l *listener.Listener) { s.bus.Remove(l) }

// Events are the events of the queries of the session, in order, each once. The bus is opened at the first
// pull, and freed when the loop ends, however it ends. The last pair holds the error that
// ended the events: that of ctx, or why the bus could not be opened or was lost. Until the
// loop comes for the next event, Spark keeps what follows.
func (s *Streams) Events(ctx context.Context) iter.Seq2[listener.Event, error] {
	return func(yield func(listener.Event, error) bool) {
		events, left, lost := make(chan listener.Event), make(chan struct{}), make(chan error, 1)
		take := func(e listener.Event) {
			select {
			case events <- e:
			case <-left:
			}
		}
		l := &listener.Listener{OnQueryStarted: take, OnQueryProgress: take, OnQueryIdle: take, OnQueryTerminated: take, OnOther: take}
		s.follow(lost)
		defer s.unfollow(lost)
		if err := s.bus.Add(ctx, l); err != nil {
			yield(listener.Event{}, err)
			return
		}
		defer s.bus.Remove(l)
		defer close(left)
		for {
			select {
			case e := <-events:
				if !yield(e, nil) {
					return
				}
			case err := <-lost:
				yield(listener.Event{}, err)
				return
			case <-ctx.Done():
				yield(listener.Event{}, ctx.Err())
				return
			}
		}
	}
}

func (s *Streams) follow(lost chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loops[lost] = struct{}{}
}

func (s *Streams) unfollow(lost chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.loops, lost)
}

// lost tells each loop once that its bus is lost.
func (s *Streams) lost(err error) {
	s.session.log.Warn("the listener bus is lost; listeners are told nothing until one is added again", "err", err)
	s.mu.Lock()
	defer s.mu.Unlock()
	for loop := range s.loops {
		select {
		case loop <- err:
		default:
		}
	}
}

// unlisten removes all listeners and frees the bus.
func (s *Session) unlisten() error {
	s.mu.Lock()
	streams := s.streams
	s.mu.Unlock()
	if streams == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), tidyTime)
	defer cancel()
	return streams.bus.Close(ctx)
}
