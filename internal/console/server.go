package console

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sparkbridge/connect"
)

// Server says which session on which server is meant.
type Server struct {
	// Remote is the connection string; where it is empty that of SPARK_REMOTE is meant.
	Remote string
	// Patience is how long the server may take to answer for the first time; after that
	// only the end of a context ends the waiting.
	Patience time.Duration
	Getenv   func(string) string // os.Getenv outside of tests
	Client   *connect.Client
}

// Attach joins the session, which must be there.
func (s *Server) Attach(ctx context.Context) (*connect.Session, error) {
	remote, err := s.remote()
	if err != nil {
		return nil, err
	}
	session, err := s.first(ctx, remote, s.Client.Attach)
	if errors.Is(err, connect.ErrSessionNotFound) {
		return nil, fmt.Errorf("user %s has no session %s on %s: name the one that the queries' program has opened, or wait until it has: %w",
			remote.UserID, remote.SessionID, remote.Address(), connect.ErrSessionNotFound)
	}
	return session, err
}

// open makes a session of our own where the remote names none; one that it names is joined,
// or made if it is missing and make says so. It belongs to nobody then, and ends when nobody
// has asked it anything for a while.
func (s *Server) open(ctx context.Context, remote connect.Remote, make bool) (*connect.Session, error) {
	switch {
	case remote.SessionID == "":
		return s.first(ctx, remote, s.Client.Open)
	case make:
		return s.first(ctx, remote, func(ctx context.Context, remote connect.Remote) (*connect.Session, error) {
			session, err := s.Client.Session(remote)
			if err != nil {
				return nil, err
			}
			if err := session.Create(ctx); err != nil {
				return nil, errors.Join(err, session.Close())
			}
			return session, nil
		})
	}
	session, err := s.first(ctx, remote, s.Client.Attach)
	if errors.Is(err, connect.ErrSessionNotFound) {
		return nil, fmt.Errorf("user %s has no session %s on %s: add --create-session to make it: %w",
			remote.UserID, remote.SessionID, remote.Address(), connect.ErrSessionNotFound)
	}
	return session, err
}

// remote reads the connection string.
func (s *Server) remote() (connect.Remote, error) {
	if s.Remote == "" {
		return connect.RemoteFromEnvironment(s.Getenv)
	}
	remote, err := connect.ParseRemote(s.Remote)
	if err != nil {
		return connect.Remote{}, err
	}
	return remote.WithEnvironment(s.Getenv)
}

// first makes the first contact, for which nobody waits for ever: a server that is not
// there is more often a wrong address than weather.
func (s *Server) first(ctx context.Context, remote connect.Remote, contact func(context.Context, connect.Remote) (*connect.Session, error)) (*connect.Session, error) {
	bounded, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	session, err := contact(bounded, remote)
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("%s has not answered within %s: start Spark Connect there, or name another server by --remote or SPARK_REMOTE: %w",
			remote.Address(), s.Patience, err)
	}
	return session, err
}
