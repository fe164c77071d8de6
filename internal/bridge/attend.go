package bridge

import (
	"context"
	"errors"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
)

const (
	// farewell bounds how long a source that stops speaks with Spark.
	farewell = 6 * time.Second
	// How long an ADD may stay without an answer until the bus counts as taken; the
	// second time and later a live server is known to answer fast.
	firstAdd, laterAdd = 10 * time.Second, 5 * time.Second
)

// open opens the bus.
func (s *source) open(ctx context.Context) (*connect.Bus, error) {
	patience := firstAdd
	if s.taken > 0 {
		patience = laterAdd
	}
	return s.session.OpenBus(ctx, connect.BusOptions{
		Store: s.memory, Keep: s.keeps(), AddTimeout: patience, Log: s.log, Reattached: s.reattaches.stream,
		Outage: func(err error) {
			if err != nil {
				s.states.tell(ctx, busWaiting, "for the server: "+err.Error())
			} else {
				s.states.tell(ctx, busAttached, "events flow again")
			}
		},
	})
}

func (s *source) keeps() bool { return s.cfg.OnStop == configs.OnStopKeep }

// attend carries what the open bus brings, until it is over or ctx ends, and lets
// go of it in the way that fits the reason.
func (s *source) attend(ctx context.Context, bus *connect.Bus) error {
	s.taken = 0
	if bus.Resumed() {
		s.reattaches.restart.Add(1)
	}
	s.states.hold(bus.OperationID())
	s.states.tell(ctx, busAttached, "events flow")
	feed := s.feed()
	op := bus.OperationID()
	feed.Stream, feed.NewBus, feed.Resumed = bus, s.memory.asked != op, bus.Resumed()
	feed.Asked = func() { s.memory.asked = op }
	err := s.tend(ctx, feed.Run)
	s.lostTo = ""
	switch {
	case ctx.Err() != nil:
		err = s.leave(ctx, feed)
	case errors.Is(err, listener.ErrDetached):
		err = errors.Join(err, s.free(ctx, feed))
	case errors.Is(err, errUnwritable), errors.Is(err, journal.ErrGone), errors.Is(err, connect.ErrTooLarge):
		// Events still on their way are asked for later; Spark must not keep more.
		err = errors.Join(err, s.remove(ctx, bus))
	}
	return errors.Join(err, bus.Close())
}

// leave ends the bus, or keeps it for the next process.
func (s *source) leave(ctx context.Context, feed *listener.Feed) error {
	if s.keeps() && !errors.Is(context.Cause(ctx), errMoved) {
		s.log.Info("the bus is kept for a restart", "within", "5m")
		return nil
	}
	if err := s.free(ctx, feed); err != nil {
		s.log.Warn("the bus was not freed; a start within five minutes reads on in it, a later one takes it back", "err", err)
		return err
	}
	s.states.tell(ctx, busClosed, "the bridge lets go of it")
	return nil
}

// free removes our listener and carries what Spark still had.
func (s *source) free(ctx context.Context, feed *listener.Feed) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	return feed.Drain(ctx)
}

// remove removes our listener and carries nothing.
func (s *source) remove(ctx context.Context, bus *connect.Bus) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	return bus.Finish(ctx)
}

// poll follows the session by asking, until ctx ends or the session is no more.
func (s *source) poll(ctx context.Context, why string) error {
	s.states.tell(ctx, busPolling, why)
	return s.tend(ctx, s.feed().Poll)
}

// pollFor polls for a while; the end of the while is no error.
func (s *source) pollFor(ctx context.Context, d time.Duration, why string) error {
	polling, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	err := s.poll(polling, why)
	if polling.Err() != nil {
		return nil // what else there was is met again
	}
	return err
}
