package console

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sparkbridge/connect"
)

// Await waits until a query has ended, for at most so long; 0 is for ever. That it fails, that
// it still runs then, and that ctx ends first are errors; the query runs on all the same.
func (c *Console) Await(ctx context.Context, s *connect.Session, name string, limit time.Duration) error {
	q, err := find(ctx, s, name)
	if err != nil {
		return err
	}
	return c.await(ctx, q, limit)
}

func (c *Console) await(ctx context.Context, q *connect.StreamingQuery, limit time.Duration) error {
	bounded, cancel := within(ctx, limit)
	defer cancel()
	err := c.beside(bounded, q, q.AwaitTermination)
	switch {
	case over(err):
		return c.outcome(ctx, q, err)
	case ctx.Err() != nil:
		return c.left(q)
	case bounded.Err() != nil:
		return errors.Join(c.standing(ctx, q, true, nil), fmt.Errorf("%s still runs after %s", label(q), limit))
	}
	return err
}

// over says whether a wait has come to the end of a query.
func over(err error) bool {
	return err == nil || errors.As(err, new(*connect.QueryError))
}

// outcome tells how a run has ended; that it has failed is an error.
func (c *Console) outcome(ctx context.Context, q *connect.StreamingQuery, err error) error {
	var failed *connect.QueryError
	if errors.As(err, &failed) {
		return errors.Join(c.standing(ctx, q, false, failed), failedError{failed})
	}
	if c.JSON {
		return c.standing(ctx, q, false, nil)
	}
	last, err := q.LastProgress(ctx)
	if err != nil {
		return err
	}
	after := "without a batch"
	if last != nil {
		after = "with " + c.batch(last)
	}
	_, err = fmt.Fprintf(c.out, "%s has ended, %s\n", label(q), after)
	return err
}

// standing tells programs where a run is at the end of a wait; people read the error.
func (c *Console) standing(ctx context.Context, q *connect.StreamingQuery, active bool, failed *connect.QueryError) error {
	if !c.JSON {
		return nil
	}
	last, err := q.LastProgress(ctx)
	if err != nil {
		return err
	}
	return c.line(endDocument{instanceOf(q), active, failureOf(failed), raw(last)})
}

// failedError is a query that has failed, with Spark's class and message. What Spark says of
// the state of the query, its plan among it, is left to bridge query exception.
type failedError struct{ query *connect.QueryError }

func (e failedError) Error() string {
	name := e.query.Name
	if name == "" {
		name = e.query.QueryID
	}
	said, _, _ := strings.Cut(e.query.Message, "\n=== Streaming Query ===")
	if class, rest, found := strings.Cut(said, ": "); found && strings.HasPrefix(rest, "[") && !strings.ContainsAny(class, " [") {
		said = rest // without Java's class, where Spark's own follows
	}
	return fmt.Sprintf("query %s failed (%s): %s", name, e.query.ErrorClass, said)
}

func (e failedError) Unwrap() error { return e.query }

// Trace shows the stack trace that an error brings from Spark, where it is asked for.
func (c *Console) Trace(err error) {
	trace := ""
	var failed *connect.QueryError
	var refused *connect.Error
	switch {
	case errors.As(err, &failed):
		trace = failed.StackTrace
	case errors.As(err, &refused):
		trace = refused.StackTrace
	}
	if c.StackTrace && trace != "" {
		_, _ = fmt.Fprintln(c.err, strings.TrimRight(trace, "\n"))
	}
}

// AwaitAny waits until any query of the session has ended, for at most so long; 0 is for
// ever. One that has ended before counts until it is forgotten by Reset.
func (c *Console) AwaitAny(ctx context.Context, s *connect.Session, limit time.Duration) error {
	bounded, cancel := within(ctx, limit)
	defer cancel()
	err := s.Streams().AwaitAnyTermination(bounded)
	var failed *connect.QueryError
	switch {
	case err == nil:
		return c.any(true, nil)
	case errors.As(err, &failed):
		return errors.Join(c.any(true, failed), failedError{failed})
	case ctx.Err() != nil:
		return errors.New("stopped waiting: the queries run on")
	case bounded.Err() != nil:
		return errors.Join(c.any(false, nil), fmt.Errorf("no query has ended within %s", limit))
	}
	return err
}

func (c *Console) any(terminated bool, failed *connect.QueryError) error {
	switch {
	case c.JSON:
		d := anyDocument{Terminated: terminated, Exception: failureOf(failed)}
		if failed != nil {
			d.ID, d.RunID = failed.QueryID, failed.RunID
		}
		return c.document(d)
	case terminated && failed == nil:
		_, err := fmt.Fprintln(c.out, "a query of this session has ended, now or earlier (bridge query reset forgets those that have)")
		return err
	}
	return nil
}

// within bounds a context by a limit; 0 is none.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, limit)
}
