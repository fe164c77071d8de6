package bridge

import (
	"context"
	"errors"

	"sparkbridge/connect"
	"sparkbridge/listener"
)

// depart asks a session that is left for another one what it has still to tell. A bus
// that was held on it has been freed.
func (s *source) depart(ctx context.Context) {
	if s.admission.Load().Torn() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	feed := s.feed()
	err := feed.Leave(ctx)
	switch {
	case errors.Is(err, connect.ErrSessionClosed):
		err = feed.EndAll(ctx, listener.OutcomeSessionClosed)
	case errors.Is(err, connect.ErrSessionNotFound), errors.Is(err, connect.ErrSessionChanged):
		err = feed.EndAll(ctx, listener.OutcomeDriverLost)
	}
	if err != nil {
		s.log.Warn("what became of the queries of the session that was left is not known", "err", err)
	}
}

// part lets go of the runs of sessions that were followed earlier. Where they were
// closed on the server that is asked now, that is what ended them; of others nothing is
// known, and they may go on.
func (s *source) part(ctx context.Context) error {
	for _, left := range s.admission.Load().Left() {
		outcome := listener.Outcome("")
		closed, err := s.closed(ctx, left)
		if err != nil {
			return err
		}
		if closed {
			outcome = listener.OutcomeSessionClosed
		}
		if err := s.feed().Part(ctx, left, outcome); err != nil {
			return err
		}
		s.log.Info("a session that was followed before is left", "session_id", left.SessionID, "closed", closed)
	}
	return nil
}

// closed says whether the server knows that another session is closed for ever. One
// that gives sessions no ids of its own (Spark 3.5) does not know, and would make it.
func (s *source) closed(ctx context.Context, other listener.Session) (closed bool, err error) {
	if s.session.ServerSideID() == "" {
		return false, nil
	}
	remote := s.where.remote
	remote.UserID, remote.SessionID = other.UserID, other.SessionID
	session, err := s.client.Session(remote)
	if err != nil {
		return false, nil // what cannot be asked is not known
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	err = session.Probe(ctx)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return errors.Is(err, connect.ErrSessionClosed), nil
}
