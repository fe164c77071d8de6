package connect

import (
	"context"
	"errors"
	"os"
	"time"

	"sparkbridge/connect/sparkpb"
)

// Open makes a session on the server that a connection string names, or that of the
// environment (SPARK_REMOTE) where it is empty: a new one under a random id, unless the
// string names one. One that is there already is joined, as by [Attach]. What the string
// does not say of user and token comes from the environment, as for Spark's own clients
// (SPARK_USER, SPARK_CONNECT_AUTHENTICATE_TOKEN).
//
// Weather is waited out until ctx ends. The session is ours: Close ends it for ever,
// which stops its queries.
func Open(ctx context.Context, remote string) (*Session, error) {
	return withRemote(remote, func(r Remote) (*Session, error) { return NewClient(ClientOptions{}).Open(ctx, r) })
}

// Attach joins a session that is there already; it never makes one: ErrSessionNotFound.
// The connection string, or that of the environment where it is empty, must name the
// user and the session. Close leaves the session as it is, for its owner.
func Attach(ctx context.Context, remote string) (*Session, error) {
	return withRemote(remote, func(r Remote) (*Session, error) { return NewClient(ClientOptions{}).Attach(ctx, r) })
}

func withRemote(remote string, open func(Remote) (*Session, error)) (*Session, error) {
	parse := func() (Remote, error) { return RemoteFromEnvironment(os.Getenv) }
	if remote != "" {
		parse = func() (Remote, error) {
			r, err := ParseRemote(remote)
			if err != nil {
				return Remote{}, err
			}
			return r.WithEnvironment(os.Getenv)
		}
	}
	r, err := parse()
	if err != nil {
		return nil, err
	}
	return open(r)
}

// Open is the function Open with this client's options.
func (c *Client) Open(ctx context.Context, r Remote) (*Session, error) {
	fresh := r.SessionID == ""
	return c.settled(r, func(s *Session) error {
		if !fresh {
			if err := s.Probe(ctx); !errors.Is(err, ErrSessionNotFound) {
				return err
			}
		}
		s.owned = true
		return s.Create(ctx)
	})
}

// Attach is the function Attach with this client's options.
func (c *Client) Attach(ctx context.Context, r Remote) (*Session, error) {
	switch {
	case r.UserID == "":
		return nil, &RemoteError{Part: "user_id", Problem: "is missing", Next: "name the user of the session to attach to: sc://host/;user_id=…;session_id=…"}
	case r.SessionID == "":
		return nil, &RemoteError{Part: "session_id", Problem: "is missing", Next: "name the session to attach to: sc://host/;user_id=…;session_id=…"}
	}
	return c.settled(r, func(s *Session) error { return s.Probe(ctx) })
}

// settled is the session of a remote once settle has been well.
func (c *Client) settled(r Remote, settle func(*Session) error) (*Session, error) {
	s, err := c.Session(r)
	if err != nil {
		return nil, err
	}
	if err := settle(s); err != nil {
		s.owned = false
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// closeTime bounds how long Close waits for the end of a session on the server.
const closeTime = 15 * time.Second

// end closes the session on the server: its queries stop, and its id is spent. A
// session that is not there any more needs nothing. A server before 4.0 cannot close one;
// there its queries are stopped.
func (s *Session) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	lasting := false
	err := s.ask(ctx, "close session", func(ctx context.Context, spark sparkpb.SparkConnectServiceClient) error {
		// A release does not say which driver it means, and would end a session that somebody has
		// made again under the same id. A question tells, but would make one that is not there.
		if err := s.probe(ctx, spark); err != nil {
			return err
		}
		if _, err := s.analyze(ctx, spark); err != nil {
			return err
		}
		_, err := spark.ReleaseSession(s.outgoing(ctx), &sparkpb.ReleaseSessionRequest{
			SessionId: s.ID(), UserContext: s.user(), ClientType: &s.clientType,
		})
		if lasting = unimplemented(err); lasting {
			return nil
		}
		return err
	})
	if lasting {
		err = s.stopQueries(ctx)
	}
	if errors.Is(err, ErrSessionNotFound) || errors.Is(err, ErrSessionClosed) || errors.Is(err, ErrSessionChanged) {
		return nil
	}
	return err
}

func (s *Session) stopQueries(ctx context.Context) error {
	queries, err := s.Active(ctx)
	for _, q := range queries {
		err = errors.Join(err, s.handle(q).Stop(ctx))
	}
	return err
}
