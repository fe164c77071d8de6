package console

import (
	"context"
	"fmt"

	"sparkbridge/connect"
)

// Exception shows what a query has failed with. That it has not is no error.
func (c *Console) Exception(ctx context.Context, s *connect.Session, name string) error {
	q, err := find(ctx, s, name)
	if err != nil {
		return err
	}
	failed, err := q.Exception(ctx)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return c.document(exceptionDocument{instanceOf(q), failureOf(failed)})
	case failed == nil:
		_, err = fmt.Fprintf(c.out, "%s has not failed\n", label(q))
		return err
	}
	if _, err := fmt.Fprintf(c.out, "%s: %s\n", failed.ErrorClass, failed.Message); err != nil || !c.StackTrace {
		return err
	}
	_, err = fmt.Fprintf(c.out, "\n%s\n", failed.StackTrace)
	return err
}

// Explain shows how Spark computes a batch; extended shows the steps to that plan too.
func (c *Console) Explain(ctx context.Context, s *connect.Session, name string, extended bool) error {
	q, err := find(ctx, s, name)
	if err != nil {
		return err
	}
	plan, err := q.Explain(ctx, extended)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return c.document(explainDocument{instanceOf(q), plan})
	}
	_, err = fmt.Fprintln(c.out, plan)
	return err
}

// Reset lets waits for any query forget those that have ended, for all clients of the
// session.
func (c *Console) Reset(ctx context.Context, s *connect.Session) error {
	if err := s.Streams().ResetTerminated(ctx); err != nil {
		return err
	}
	if c.JSON {
		return c.document(struct {
			ResetTerminated bool `json:"resetTerminated"`
		}{true})
	}
	_, err := fmt.Fprintln(c.out, "queries that have ended are forgotten: waits for any query, of all clients of this session, wait for the next one")
	return err
}
