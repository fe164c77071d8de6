package console

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sparkbridge/connect"
)

// Drain waits until a query has caught up, and stops it. After limit it is stopped in any
// case, which is an error; 0 is no limit. When ctx ends before that, the query runs on.
func (c *Console) Drain(ctx context.Context, s *connect.Session, name string, limit time.Duration) error {
	q, err := find(ctx, s, name)
	if err != nil {
		return err
	}
	return c.drain(ctx, q, limit)
}

func (c *Console) drain(ctx context.Context, q *connect.StreamingQuery, limit time.Duration) error {
	err := c.beside(ctx, q, func(ctx context.Context) error {
		return q.Drain(ctx, connect.DrainOptions{Limit: limit})
	})
	switch {
	case over(err):
		return c.outcome(ctx, q, err)
	case ctx.Err() != nil:
		return c.left(q)
	case errors.Is(err, connect.ErrNotCaughtUp):
		return errors.Join(c.outcome(ctx, q, nil), fmt.Errorf("%s was stopped after %s, before it had caught up", label(q), limit))
	}
	return err
}

// Stop stops a query and waits until it has ended.
func (c *Console) Stop(ctx context.Context, s *connect.Session, name string) error {
	q, err := find(ctx, s, name)
	if err != nil {
		return err
	}
	err = c.beside(ctx, q, q.Stop)
	switch {
	case err == nil:
		return c.outcome(ctx, q, nil)
	case ctx.Err() != nil:
		return fmt.Errorf("stopped waiting: %s was told to stop, and ends with its batch", label(q))
	}
	return err
}

// left is the error of a wait that was given up, and what became of the query.
func (c *Console) left(q *connect.StreamingQuery) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if active, err := q.IsActive(ctx); err == nil && !active {
		return fmt.Errorf("stopped waiting: %s has ended", label(q))
	}
	return fmt.Errorf("stopped waiting: %s runs on", label(q))
}
