package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/internal/console"
)

// query is the flags of the commands on queries.
type query struct {
	server     console.Server
	output     string
	stackTrace bool
}

func queryCommand() *cobra.Command {
	q := query{server: console.Server{Getenv: os.Getenv}}
	cmd := &cobra.Command{
		Use:   "query",
		Short: "Start, watch, drain and stop the queries of a session",
		Long: "Works on the streaming queries of a Spark Connect session, without a bridge. The session is one that is there\n" +
			"already, the job's own as a rule: sc://host:15002/;user_id=…;session_id=…, from --remote or SPARK_REMOTE (user and\n" +
			"token also from SPARK_USER and SPARK_CONNECT_AUTHENTICATE_TOKEN). Only start can make one.\n\n" +
			"A query is named by its name, its id or its run id; one that has ended by id/runId, which Spark remembers for an\n" +
			"hour. A time is written as 10s, 1m30s or \"10 seconds\".",
		Example: "  export SPARK_REMOTE='sc://localhost:15002/;user_id=etl;session_id=…'\n" +
			"  bridge query list\n" +
			"  bridge query progress orders --follow",
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	outputFlag(cmd, &q.output)
	flags := cmd.PersistentFlags()
	flags.StringVar(&q.server.Remote, "remote", "", "Spark Connect connection string (default $SPARK_REMOTE)")
	patience := interval(30 * time.Second)
	flags.Var(&patience, "connect-timeout", "how long the server may take to answer for the first `time`")
	flags.BoolVar(&q.stackTrace, "stack-trace", false, "show Java's stack trace of a failure too")
	cmd.PersistentPreRun = func(*cobra.Command, []string) { q.server.Patience = time.Duration(patience) }
	cmd.AddCommand(q.start(), q.list(), q.status(), q.progress(), q.exception(), q.explain(), q.await(), q.drain(), q.stop(), q.reset())
	return cmd
}

// on runs work in the session that is meant.
func (q *query) on(cmd *cobra.Command, work func(context.Context, *console.Console, *connect.Session) error) error {
	return q.run(cmd, func(ctx context.Context, c *console.Console) error {
		session, err := q.server.Attach(ctx)
		if err != nil {
			return err
		}
		return errors.Join(work(ctx, c, session), session.Close())
	})
}

// run runs work until it ends or a signal asks to stop.
func (q *query) run(cmd *cobra.Command, work func(context.Context, *console.Console) error) error {
	if err := checkOutput(q.output); err != nil {
		return err
	}
	c := console.New(cmd.OutOrStdout(), cmd.ErrOrStderr())
	c.JSON, c.StackTrace = q.output == "json", q.stackTrace
	log := configs.Log{Level: "warn"}
	if f, ok := cmd.ErrOrStderr().(*os.File); ok && isTerminal(f) && os.Getenv("TERM") != "dumb" {
		width, _, _ := term.GetSize(int(f.Fd())) // 0, where there is none, is any
		c.OnTerminal(width)
		log.Format = configs.LogText
	}
	q.server.Client = connect.NewClient(connect.ClientOptions{Log: newLogger(c.Err(), log), Version: version()})
	err := untilSignal(stopGrace, func(ctx context.Context) error {
		err := work(ctx, c)
		if errors.Is(err, context.Canceled) {
			return errors.New("interrupted before Spark had answered")
		}
		return err
	})
	c.Trace(err)
	if errors.As(err, new(*connect.RemoteError)) || errors.Is(err, connect.ErrUnauthenticated) || errors.Is(err, connect.ErrBadID) {
		return usageError{err}
	}
	return classified(err)
}

// oneQuery demands the name of a query.
func oneQuery(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New(cmd.CommandPath() + " takes the name or id of one query: bridge query list shows them")
	}
	return nil
}

// interval is a flag that takes a duration as Go or Spark people write it.
type interval time.Duration

// String is the duration in Go's form, empty for none.
func (i *interval) String() string {
	if *i == 0 {
		return ""
	}
	return time.Duration(*i).String()
}

// Set reads a duration.
func (i *interval) Set(text string) error {
	d, err := connect.ParseInterval(text)
	*i = interval(d)
	return err
}

// Type is what the help calls the value.
func (*interval) Type() string { return "duration" }
