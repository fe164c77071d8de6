package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sparkbridge/configs"
	"sparkbridge/internal/bridge"
	"sparkbridge/internal/control"
	"sparkbridge/internal/tail"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// tailing is the flags of bridge tail.
type tailing struct {
	place
	url             string
	remote          string
	bus             bool
	output          string
	since, last     string
	match           sinks.Match
	kinds, outcomes []string
}

func tailCommand() *cobra.Command {
	var t tailing
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print events as they come",
		Long: "Prints the events of a bridge that runs on this machine, found by its configuration and asked by its socket;\n" +
			"of one elsewhere with --url; or with --remote those of a session, without a bridge: it asks Spark for the\n" +
			"progress of the queries, or holds the session's listener bus if --bus is set (the job's own addListener then\n" +
			"waits until tail ends). It goes on until it is stopped.",
		Example: "  bridge tail --query 'orders*' --kind terminated,gap --since 10m\n" +
			"  bridge tail --remote 'sc://localhost:15002/;user_id=etl;session_id=…' -o json",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return t.run(cmd) },
	}
	t.flags(cmd)
	outputFlag(cmd, &t.output)
	flags := cmd.Flags()
	flags.StringVar(&t.url, "url", "", "`URL` of the bridge, to ask it by HTTP (its token: $BRIDGE_TOKEN)")
	flags.StringVar(&t.remote, "remote", "", "of a session instead of a bridge: Spark Connect connection string")
	flags.BoolVar(&t.bus, "bus", false, "with --remote: hold the session's listener bus")
	flags.StringSliceVar(&t.kinds, "kind", nil, "only events of these `kinds`")
	flags.StringSliceVar(&t.match.Queries, "query", nil, "only events of queries with these `names`; * stands for any text. Those without a name always come")
	flags.StringSliceVar(&t.match.Sources, "source", nil, "only events of these `sources`")
	flags.StringSliceVar(&t.outcomes, "outcome", nil, "of the ends of runs only those with these `outcomes`")
	flags.StringVar(&t.since, "since", "", "begin at a `time`, or so long ago (10m), and go on with what comes; default now")
	flags.StringVar(&t.last, "last", "", "begin with the last so many events (`n`), and go on with what comes")
	return cmd
}

func (t *tailing) run(cmd *cobra.Command) error {
	if err := cmp.Or(exclude(cmd, "url", "remote", "config", "journal"), exclude(cmd, "since", "last"), t.check()); err != nil {
		return err
	}
	work := t.session
	if t.remote == "" {
		from, err := t.bridge()
		if err != nil {
			return err
		}
		work = from
	}
	printer, log := t.printer(cmd), newLogger(cmd.ErrOrStderr(), configs.Log{Level: "warn"})
	return classified(untilSignal(stopGrace, func(ctx context.Context) error { return work(ctx, printer, log) }))
}

// check refuses what does not go together, and reads the words.
func (t *tailing) check() error {
	if err := checkOutput(t.output); err != nil {
		return err
	}
	for _, name := range t.kinds {
		kind, err := listener.ParseKind(name)
		if err != nil {
			return fmt.Errorf("--kind: %w", err)
		}
		t.match.Kinds = append(t.match.Kinds, kind)
	}
	for _, name := range t.outcomes {
		outcome, err := listener.ParseOutcome(name)
		if err != nil {
			return fmt.Errorf("--outcome: %w", err)
		}
		t.match.Outcomes = append(t.match.Outcomes, outcome)
	}
	switch {
	case t.remote != "" && (t.since != "" || t.last != ""):
		return errors.New("--since and --last are for a bridge, which keeps events: drop them, or --remote")
	case t.bus && t.remote == "":
		return errors.New("--bus is for a session: add --remote")
	}
	return t.checkBegin()
}

// checkBegin refuses what the bridge would, in the words of the flags.
func (t *tailing) checkBegin() error {
	if _, err := strconv.ParseUint(t.last, 10, 32); t.last != "" && err != nil {
		return fmt.Errorf("--last %q is no number of events: write for example --last 50", t.last)
	}
	ago, noDuration := time.ParseDuration(t.since)
	if _, noTime := time.Parse(time.RFC3339, t.since); t.since != "" && noTime != nil && (noDuration != nil || ago < 0) {
		return fmt.Errorf("--since %q is neither a time nor a duration: write for example 2026-01-31T12:00:00Z or 10m", t.since)
	}
	at, err := url.Parse(t.url)
	if t.url != "" && (err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "") {
		return fmt.Errorf("--url %q is no address of a bridge: write for example http://127.0.0.1:4050", t.url)
	}
	return nil
}

func (t *tailing) printer(cmd *cobra.Command) *tail.Printer {
	p := &tail.Printer{W: cmd.OutOrStdout(), JSON: t.output == "json"}
	if f, ok := p.W.(*os.File); ok && isTerminal(f) {
		p.Colours = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		p.Width, _, _ = term.GetSize(int(f.Fd())) // 0, where there is none, is any
	}
	return p
}

// follower prints events until ctx ends.
type follower = func(ctx context.Context, p *tail.Printer, log *slog.Logger) error

// bridge follows a bridge that runs: by its socket, or by HTTP where --url says so.
func (t *tailing) bridge() (follower, error) {
	b := &tail.Bridge{URL: t.url, Token: os.Getenv("BRIDGE_TOKEN"), Query: t.query(), HTTP: &http.Client{Transport: &http.Transport{}}}
	if t.url == "" {
		dir, err := t.folder()
		if err != nil {
			return nil, err
		}
		b.URL, b.Token, b.HTTP = control.URL, "", control.HTTP(dir)
	}
	return func(ctx context.Context, p *tail.Printer, log *slog.Logger) error {
		defer b.HTTP.CloseIdleConnections()
		b.Log = log
		return t.advised(b.Follow(ctx, p.Print))
	}, nil
}

// advised adds to an error of a bridge that is asked by HTTP what to do; by its socket the
// error says so itself.
func (t *tailing) advised(err error) error {
	var refused *tail.RefusedError
	switch {
	case err == nil || t.url == "":
		return err
	case errors.As(err, &refused) && refused.Status == http.StatusUnauthorized:
		return fmt.Errorf("%w: put it into BRIDGE_TOKEN", err)
	case errors.As(err, new(net.Error)), errors.As(err, &refused) && refused.Status == http.StatusNotFound:
		return fmt.Errorf("%w: --url must be where a bridge serves HTTP (its http.listen); without it a bridge on this machine is asked by its socket", err)
	}
	return err
}

func (t *tailing) query() url.Values {
	query := url.Values{"source": t.match.Sources, "query": t.match.Queries, "kind": t.kinds, "outcome": t.outcomes}
	for name, value := range map[string]string{"since": t.since, "last": t.last} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// session prints the events of a session.
func (t *tailing) session(ctx context.Context, p *tail.Printer, log *slog.Logger) error {
	source, err := configs.SourceOf(t.remote, configs.OSEnvironment())
	if err != nil {
		return err
	}
	source.Mode = configs.ModePoll
	if t.bus {
		source.Mode = configs.ModeAuto
	}
	return bridge.Tail(ctx, source, t.match, log, version(), func(e listener.Event) error { return p.Print(sinks.Structured(&e)) })
}
