package main

import (
	"context"

	"github.com/spf13/cobra"

	"sparkbridge/connect"
	"sparkbridge/internal/console"
)

func (q *query) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the queries that run, whoever has started them",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return q.on(cmd, func(ctx context.Context, c *console.Console, s *connect.Session) error { return c.List(ctx, s) })
		},
	}
}

func (q *query) status() *cobra.Command {
	return q.ofOne("status", "Show what a query does at the moment", (*console.Console).Status)
}

func (q *query) exception() *cobra.Command {
	cmd := q.ofOne("exception", "Show what a query has failed with", (*console.Console).Exception)
	cmd.Long = "Shows what a query has failed with, which is no failure of the command. One that has failed runs no more, so\n" +
		"it is named by id/runId."
	return cmd
}

func (q *query) explain() *cobra.Command {
	var extended bool
	cmd := q.ofOne("explain", "Show how Spark computes a batch of a query",
		func(c *console.Console, ctx context.Context, s *connect.Session, name string) error {
			return c.Explain(ctx, s, name, extended)
		})
	cmd.Flags().BoolVar(&extended, "extended", false, "show the logical plans too")
	return cmd
}

func (q *query) progress() *cobra.Command {
	var recent, follow bool
	cmd := q.ofOne("progress", "Show what a query has done last",
		func(c *console.Console, ctx context.Context, s *connect.Session, name string) error {
			switch {
			case follow:
				return c.Follow(ctx, s, name, recent)
			case recent:
				return c.Recent(ctx, s, name)
			}
			return c.Progress(ctx, s, name)
		})
	cmd.Long = "Shows what a query has done last; a query with a continuous trigger tells no progress. With -o json the progress\n" +
		"is Spark's own document, with --recent an array of them, with --follow one on each line."
	cmd.Flags().BoolVar(&recent, "recent", false, "show all that Spark keeps, 99 batches unless it was told otherwise")
	cmd.Flags().BoolVar(&follow, "follow", false, "show each batch as it comes until the query ends; one that fails exits 1")
	return cmd
}

// ofOne is a command on one query.
func (q *query) ofOne(name, short string, work func(*console.Console, context.Context, *connect.Session, string) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " query",
		Short: short,
		Args:  oneQuery,
		RunE: func(cmd *cobra.Command, args []string) error {
			return q.on(cmd, func(ctx context.Context, c *console.Console, s *connect.Session) error {
				return work(c, ctx, s, args[0])
			})
		},
	}
}
