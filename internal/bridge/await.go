package bridge

import (
	"context"
	"errors"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/listener"
)

// letGo is how long a session that was let go is not asked at all, so that Spark
// can close it: by default it does an hour after the last call.
const letGo = 65 * time.Minute

// awaitSession waits for the server, and for the job to make its session.
func (s *source) awaitSession(ctx context.Context) error {
	if s.detached {
		if err := pause(ctx, max(letGo, s.cfg.DetachWhenIdle)); err != nil {
			return err
		}
		s.detached = false
	}
	if !s.met {
		s.states.tell(ctx, busWaiting, "for the server "+s.session.Address())
	}
	for {
		err := s.session.Probe(ctx)
		switch {
		case err == nil:
			s.met = true
			return nil
		case errors.Is(err, connect.ErrSessionChanged):
			if err := s.restarted(ctx); err != nil {
				return err
			}
		case !errors.Is(err, connect.ErrSessionNotFound):
			return err
		case s.cfg.CreateSession:
			return s.session.Create(ctx)
		default:
			if err := s.missing(ctx); err != nil {
				return err
			}
		}
	}
}

// missing waits a while for a session that the server does not have. Runs that it
// had are over: the driver has restarted.
func (s *source) missing(ctx context.Context) error {
	s.met = true
	if err := s.restarted(ctx); err != nil {
		return err
	}
	s.states.tell(ctx, busWaiting, "for the session: the server does not have it yet; the job makes it when it connects with this user_id and session_id")
	return pause(ctx, s.cfg.PollInterval)
}

// restarted ends the runs of a driver that is no more, and lets the session go on
// with whatever driver answers next.
func (s *source) restarted(ctx context.Context) error {
	s.session.Forget()
	s.starter.reset()
	return s.feed().EndAll(ctx, listener.OutcomeDriverLost)
}

// awaitQuery waits for the session's first query, so that the job's own listeners
// can be added before ours; unless the bus is ours already, or the queries are to be started
// by us.
func (s *source) awaitQuery(ctx context.Context) error {
	if s.cfg.Attach == configs.AttachAtOnce || s.cfg.CreateSession || len(s.cfg.Queries) > 0 {
		return nil
	}
	if ours, err := s.memory.holds(s.session); ours || err != nil {
		return err
	}
	idleSince := time.Now()
	for {
		queries, err := s.session.Active(ctx)
		if err != nil || len(queries) > 0 {
			return err
		}
		if idle := s.cfg.DetachWhenIdle; idle > 0 && time.Since(idleSince) >= idle {
			return listener.ErrDetached
		}
		s.states.tell(ctx, busWaiting, "for a query: the session has none (attach: first_query)")
		if err := pause(ctx, s.cfg.PollInterval); err != nil {
			return err
		}
	}
}
