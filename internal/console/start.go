package console

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/internal/queries"
)

// Start says what becomes of a session and of a query that is started in it.
type Start struct {
	CreateSession bool          // make the session that is named, if it is missing
	Await         bool          // wait until the query has ended
	Drain         bool          // wait until the query has caught up, and stop it
	Limit         time.Duration // of either, 0 for none
}

// Start starts a query. Where the connection string names no session, one is made that ends
// with this call, and its query with it.
func (c *Console) Start(ctx context.Context, server *Server, query *configs.Query, o Start) (err error) {
	remote, err := server.remote()
	if err != nil {
		return err
	}
	own := remote.SessionID == ""
	if own && !o.Await && !o.Drain {
		return &connect.RemoteError{Part: "session_id", Problem: "is missing, and a session of its own would end with this command, the query with it",
			Next: "name the session in which the query is to stay, or add --await or --drain"}
	}
	session, err := server.open(ctx, remote, o.CreateSession)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	q, err := queries.Start(ctx, session, query)
	if err != nil {
		return err
	}
	if err := c.started(q); err != nil {
		return err
	}
	if o.CreateSession && !own {
		c.note("session %s ends, with its queries, when no client asks it anything for an hour (by Spark's defaults); bridge run and bridge query await do ask", session.ID())
	}
	err = c.stay(ctx, q, o)
	if own && err != nil && ctx.Err() != nil {
		return fmt.Errorf("%s is stopped, with the session that was its own", label(q))
	}
	return err
}

func (c *Console) started(q *connect.StreamingQuery) error {
	if c.JSON {
		return c.line(instanceOf(q))
	}
	name := "the query"
	if q.Name() != "" {
		name = label(q)
	}
	_, err := fmt.Fprintf(c.out, "%s runs, with id %s and run id %s\n", name, q.ID(), q.RunID())
	return err
}

// stay waits for a query that was started, if that is asked for.
func (c *Console) stay(ctx context.Context, q *connect.StreamingQuery, o Start) error {
	switch {
	case o.Drain:
		return c.drain(ctx, q, o.Limit)
	case o.Await:
		return c.await(ctx, q, o.Limit)
	}
	return nil
}
