package bridge

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"sparkbridge/connect"
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

// recover decides what follows from the end of a bus, or of the attempt to open
// one. It returns an error when the source cannot go on.
func (s *source) recover(ctx context.Context, why error) error {
	switch {
	case errors.Is(why, connect.ErrUnauthenticated) && !s.met:
		return usage(s.explain("the server refuses the token; set token, or SPARK_CONNECT_AUTHENTICATE_TOKEN, to the one that the server was started with", why))
	case errors.Is(why, connect.ErrBadID):
		return usage(s.explain("the server takes only UUIDs as session ids; set session_id in remote to the id of the job's session", why))
	case errors.Is(why, connect.ErrUnsupported):
		return broken(s.explain("the server has no listener bus, which came with Spark 4.0", why))
	case errors.Is(why, connect.ErrSessionClosed):
		s.tell(ctx, busClosed, "the session is closed, and its id can never be used again")
		return broken(s.explain("the session is closed for ever; start the job with a new session_id and set it in remote", why))
	case errors.Is(why, connect.ErrBusTaken):
		s.tell(ctx, busTaken, "another client holds the bus; it is tried again until it is free")
		s.taken++
		return s.again(ctx, min(takenFirst<<min(s.taken-1, 4), takenLongest))
	case errors.Is(why, connect.ErrBusRemoved):
		s.tell(ctx, busLost, "somebody removed our listener, or the session is closing")
		return s.again(ctx, afterRemove)
	case s.gone(why):
		s.session.Forget()
		s.tell(ctx, busLost, why.Error())
		return nil
	default:
		s.tell(ctx, busLost, why.Error())
		return s.again(ctx, afterRefusal)
	}
}

// gone says that the operation, or the driver with it, is no more, so that a new
// one can be opened at once.
func (s *source) gone(why error) bool {
	for _, reason := range []error{
		connect.ErrSessionNotFound, connect.ErrSessionChanged, connect.ErrOperationNotFound,
		connect.ErrOperationAbandoned, connect.ErrPositionLost, connect.ErrTooLarge,
	} {
		if errors.Is(why, reason) {
			return true
		}
	}
	return false
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
