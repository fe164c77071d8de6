package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
)

const (
	// afterRemove is the pause after somebody else's REMOVE: whoever removed our
	// listener may be about to add one.
	afterRemove = 10 * time.Second
	// A taken bus is tried rarely, because an ADD between the owner's remove and
	// its next add makes the owner wait for ever.
	takenFirst, takenLongest = time.Minute, 10 * time.Minute
	// afterRefusal is the pause after an answer that has no rule of its own.
	afterRefusal = 30 * time.Second
)

// recover decides what follows from the end of a bus or of polling, or of the
// attempt to begin with it. It returns an error when the session is finished, or
// the source cannot go on.
func (s *source) recover(ctx context.Context, why error) error {
	switch {
	case why == nil:
		return nil
	case errors.Is(why, journal.ErrGone):
		return broken(s.explain("the journal was removed while it was used; start the bridge again, and it begins a new one", why))
	case errors.Is(why, errUnwritable), errors.Is(why, listener.ErrNotKept):
		return s.awaitJournal(ctx)
	case errors.Is(why, listener.ErrDetached):
		s.detached = true
		s.states.tell(ctx, busClosed, fmt.Sprintf("no query for %s: the session is let go (detach_when_idle)", s.cfg.DetachWhenIdle))
		return nil
	case errors.Is(why, connect.ErrUnauthenticated) && !s.met:
		return usage(s.explain("the server refuses the token; set token, or SPARK_CONNECT_AUTHENTICATE_TOKEN, to the one that the server was started with", why))
	case errors.Is(why, connect.ErrBadID):
		return usage(s.explain("the server takes only UUIDs as session ids; set session_id in remote to the id of the job's session", why))
	case errors.Is(why, connect.ErrUnsupported):
		return s.unsupported(ctx, why)
	case errors.Is(why, connect.ErrSessionClosed):
		return s.finished(ctx, why)
	case errors.Is(why, connect.ErrBusTaken):
		return s.shut(ctx)
	case errors.Is(why, io.EOF):
		return nil // the rest of a bus that we have removed has been read
	case errors.Is(why, connect.ErrBusRemoved):
		s.states.tell(ctx, busLost, "somebody removed our listener, or the session is closing")
		return s.again(ctx, afterRemove)
	case errors.Is(why, connect.ErrSessionNotFound), errors.Is(why, connect.ErrSessionChanged):
		s.states.tell(ctx, busLost, "the driver has restarted")
		return s.recover(ctx, s.restarted(ctx))
	case s.gone(why):
		s.states.tell(ctx, busLost, why.Error())
		again := time.Since(s.goneAt) < afterRefusal
		if s.goneAt = time.Now(); again {
			return s.again(ctx, afterRefusal)
		}
		return nil
	default:
		s.states.tell(ctx, busLost, why.Error())
		return s.again(ctx, afterRefusal)
	}
}

// gone says that the operation is no more, so that a new one can be opened at once,
// unless that was just done.
func (s *source) gone(why error) bool {
	if errors.Is(why, connect.ErrTooLarge) {
		s.lostTo = listener.GapTooLarge
		return true
	}
	return errors.Is(why, connect.ErrOperationNotFound) ||
		errors.Is(why, connect.ErrOperationAbandoned) || errors.Is(why, connect.ErrPositionLost)
}

// shut follows a session whose bus is another client's: takes the bus over, asks
// instead, or waits, as configured.
func (s *source) shut(ctx context.Context) error {
	s.taken++
	wait := min(takenFirst<<min(s.taken-1, 4), takenLongest)
	wait += rand.N(wait/10 + 1)
	switch {
	case s.cfg.Takeover && s.taken == 1:
		s.states.tell(ctx, busTaken, "another client holds the bus; it is taken over (takeover: true)")
		if err := s.session.RemoveListener(ctx); err != nil {
			return s.again(ctx, afterRefusal)
		}
		return nil
	case s.cfg.Mode == configs.ModeBus:
		s.states.tell(ctx, busTaken, "another client holds the bus; it is tried again until it is free (mode: bus)")
		return s.again(ctx, wait)
	}
	if s.taken == 1 {
		s.states.tell(ctx, busTaken, "another client holds the bus")
	}
	err := s.pollFor(ctx, wait, "another client holds the bus; the session is polled, and the bus tried again now and then")
	if err == nil || ended(ctx) {
		return nil
	}
	return s.recover(ctx, err)
}

// unsupported follows a session of a Spark that has no listener bus.
func (s *source) unsupported(ctx context.Context, why error) error {
	if s.cfg.Mode == configs.ModeBus {
		return broken(s.explain("the server has no listener bus, which came with Spark 4.0; set mode: auto or mode: poll", why))
	}
	err := s.poll(ctx, "the server has no listener bus (Spark before 4.0)")
	if ended(ctx) {
		return nil
	}
	return s.recover(ctx, err)
}

// finished ends the runs of a session that is closed for ever, and says so.
func (s *source) finished(ctx context.Context, why error) error {
	if err := s.feed().EndAll(ctx, listener.OutcomeSessionClosed); err != nil {
		return s.recover(ctx, err)
	}
	next := "start the job with a new session_id and set it in remote"
	if s.cfg.RemoteFile != "" {
		next = "waiting for a new one in " + s.cfg.RemoteFile
	}
	s.states.tell(ctx, busClosed, "the session is closed, and its id can never be used again; "+next)
	return broken(s.explain("the session is closed for ever; "+next, why))
}

// again waits, with a jitter so that several bridges do not return together. The
// end of ctx is no error here.
func (s *source) again(ctx context.Context, wait time.Duration) error {
	_ = pause(ctx, wait+rand.N(wait/10+1))
	return nil
}

func (s *source) explain(what string, why error) error {
	return fmt.Errorf("source %s: %s (%w)", s.cfg.Name, what, why)
}
