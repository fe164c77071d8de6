package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"sparkbridge/connect"
	"sparkbridge/internal/console"
)

func (q *query) await() *cobra.Command {
	var limit interval
	cmd := &cobra.Command{
		Use:   "await [query]",
		Short: "Wait until a query has ended; without one, any query of the session",
		Long: "Waits until a query has ended, and exits 0 after a clean end and 1 when it has failed or the time runs out. The\n" +
			"query runs on if the waiting ends. Without a query it waits for any of the session; one that has ended earlier\n" +
			"counts until bridge query reset.",
		Example: "  bridge query await orders --timeout '10 minutes'",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return errors.New("bridge query await takes one query at most: bridge query list shows them")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return q.on(cmd, func(ctx context.Context, c *console.Console, s *connect.Session) error {
				if len(args) == 0 {
					return c.AwaitAny(ctx, s, time.Duration(limit))
				}
				return c.Await(ctx, s, args[0], time.Duration(limit))
			})
		},
	}
	cmd.Flags().Var(&limit, "timeout", "how long to wait; when it runs out, exit 1 (default for ever)")
	return cmd
}

func (q *query) drain() *cobra.Command {
	var limit interval
	cmd := q.ofOne("drain", "Wait until a query has caught up, then stop it",
		func(c *console.Console, ctx context.Context, s *connect.Session, name string) error {
			return c.Drain(ctx, s, name, time.Duration(limit))
		})
	cmd.Long = "Waits until a query has processed what its sources have, and stops it; never before Spark has looked for data once.\n" +
		"A query that ends by itself (available-now, once) is drained by that. It exits 1 when the query fails or the limit\n" +
		"runs out. If the waiting ends before that, the query runs on."
	cmd.Flags().Var(&limit, "limit", "for sources that never end: stop it after so long in any case, and exit 1 (default none)")
	return cmd
}

func (q *query) stop() *cobra.Command {
	cmd := q.ofOne("stop", "Stop a query", (*console.Console).Stop)
	cmd.Long = "Stops a query and waits until it has ended, which may take as long as its batch."
	return cmd
}

func (q *query) reset() *cobra.Command {
	return &cobra.Command{
		Use:   "reset",
		Short: "Let await without a query forget those that have ended",
		Long: "Lets waits for any query forget those that have ended: bridge query await without a query, and the\n" +
			"awaitAnyTermination of every other client of the session.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return q.on(cmd, func(ctx context.Context, c *console.Console, s *connect.Session) error { return c.Reset(ctx, s) })
		},
	}
}
