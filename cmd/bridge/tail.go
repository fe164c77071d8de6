package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sparkbridge/configs"
	"sparkbridge/internal/bridge"
	"sparkbridge/internal/tail"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// tailing is the flags of bridge tail.
type tailing struct {
	file, url, token string
	remote           string
	bus              bool
	output           string
	since, last      string
	match            sinks.Match
	kinds            []string
}

func tailCommand() *cobra.Command {
	var t tailing
	cmd := &cobra.Command{
		Use:   "tail",
		Short: "Print events as they come",
		Long: "Prints the events of a bridge that runs, found by its configuration or by --url; or with --remote those\n" +
			"of a session, without a bridge: it asks Spark for the progress of the queries, or holds the session's\n" +
			"listener bus if --bus is set (the job's own addListener then waits until tail ends).",
		Example: "  bridge tail --query 'orders*' --kind terminated,gap --since 10m\n" +
			"  bridge tail --remote 'sc://localhost:15002/;user_id=etl;session_id=…' -o json",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return t.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&t.file, "config", "c", "", "configuration `file` of the bridge (default ./"+defaultFile+" if it is there)")
	flags.StringVar(&t.url, "url", "", "`URL` of the bridge, instead of a configuration (its token: $BRIDGE_TOKEN)")
	flags.StringVar(&t.remote, "remote", "", "of a session instead of a bridge: Spark Connect connection string")
	flags.BoolVar(&t.bus, "bus", false, "with --remote: hold the session's listener bus")
	flags.StringVarP(&t.output, "output", "o", "text", "`form` of what is printed: text, or json, a CloudEvent a line")
	flags.StringSliceVar(&t.kinds, "kind", nil, "only events of these `kinds`")
	flags.StringSliceVar(&t.match.Queries, "query", nil, "only events of queries with these `names`; * stands for any text. Those without a name always come")
	flags.StringSliceVar(&t.match.Sources, "source", nil, "only events of these `sources`")
	flags.StringVar(&t.since, "since", "", "begin at a `time`, or so long ago (10m); default now")
	flags.StringVar(&t.last, "last", "", "begin with the last so many events (`n`)")
	cmd.MarkFlagsMutuallyExclusive("url", "remote", "config")
	cmd.MarkFlagsMutuallyExclusive("since", "last")
	return cmd
}

func (t *tailing) run(cmd *cobra.Command) error {
	if t.output != "text" && t.output != "json" {
		return fmt.Errorf("--output %q is not known: use text or json", t.output)
	}
	for _, k := range t.kinds {
		t.match.Kinds = append(t.match.Kinds, listener.Kind(k))
	}
	if t.remote != "" && (t.since != "" || t.last != "") {
		return errors.New("--since and --last are for a bridge, which keeps events: drop them, or --remote")
	}
	if t.bus && t.remote == "" {
		return errors.New("--bus is for a session: add --remote")
	}
	work := t.bridge
	if t.remote != "" {
		work = t.session
	} else if err := t.find(); err != nil {
		return err
	}
	printer := t.printer(cmd)
	return classified(untilSignal(stopGrace, func(ctx context.Context) error { return work(ctx, cmd, printer) }))
}

func (t *tailing) printer(cmd *cobra.Command) *tail.Printer {
	p := &tail.Printer{W: cmd.OutOrStdout(), JSON: t.output == "json"}
	if f, ok := p.W.(*os.File); ok && isTerminal(f) {
		p.Colours = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		p.Width, _, _ = term.GetSize(int(f.Fd())) // 0, where there is none, is any
	}
	return p
}

// bridge prints the events of a bridge that runs.
func (t *tailing) bridge(ctx context.Context, cmd *cobra.Command, p *tail.Printer) error {
	query := url.Values{"source": t.match.Sources, "query": t.match.Queries, "kind": t.kinds}
	for name, value := range map[string]string{"since": t.since, "last": t.last} {
		if value != "" {
			query.Set(name, value)
		}
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	b := &tail.Bridge{URL: t.url, Token: t.token, Query: query, HTTP: &http.Client{Transport: transport}, Log: newLogger(cmd.ErrOrStderr(), configs.Log{Level: "warn"})}
	return b.Follow(ctx, p.Print)
}

// find sets the address and the token of the bridge.
func (t *tailing) find() error {
	if t.url != "" {
		t.token = os.Getenv("BRIDGE_TOKEN")
		return nil
	}
	cfg, err := configs.Load(cmp.Or(t.file, defaultFile))
	if err != nil {
		return err
	}
	listen, _ := cfg.HTTP.Address()
	if listen == "" {
		return errors.New("http.listen is off: this bridge cannot be asked for events")
	}
	t.url, t.token = "http://"+reachable(listen), cfg.HTTP.Token.Reveal()
	return nil
}

// reachable is an address to call for one to listen on.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err == nil && (host == "" || ip != nil && ip.IsUnspecified()) {
		return net.JoinHostPort("localhost", port)
	}
	return listen
}

// session prints the events of a session.
func (t *tailing) session(ctx context.Context, cmd *cobra.Command, p *tail.Printer) error {
	source, err := configs.SourceOf(t.remote, configs.OSEnvironment())
	if err != nil {
		return err
	}
	source.Mode = configs.ModePoll
	if t.bus {
		source.Mode = configs.ModeAuto
	}
	log := newLogger(cmd.ErrOrStderr(), configs.Log{Level: "warn"})
	return bridge.Tail(ctx, source, log, version(), func(e listener.Event) error {
		if !t.match.Wants(&e) {
			return nil
		}
		return p.Print(sinks.Structured(&e))
	})
}
