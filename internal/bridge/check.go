package bridge

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/sinks"
)

// asked is what can be asked beforehand whether it would take the events of
// sources, without effect on anything, until ctx ends.
type asked interface {
	Check(ctx context.Context, sources []string) []sinks.Finding
}

// Check asks Spark and each sink whether the bridge would work now. It takes no
// bus, creates no session (but Spark before 4.0 makes one that it is asked for, and where
// there are queries to start one of our own is made, and closed again, to plan them in), and
// sends and makes nothing. All are asked beside each other; what has not answered
// when ctx ends is a problem of the report.
func Check(ctx context.Context, cfg *configs.Config, version string) *Report {
	return check(ctx, cfg, connect.NewClient(connect.ClientOptions{Version: version}), version)
}

func check(ctx context.Context, cfg *configs.Config, client *connect.Client, version string) *Report {
	r := &Report{Sources: make([]Checked, len(cfg.Sources)), Sinks: make([]Checked, len(cfg.Sinks))}
	names := make([]string, 0, len(cfg.Sources))
	for _, source := range cfg.Sources {
		names = append(names, source.Name)
	}
	var asking sync.WaitGroup
	for i, source := range cfg.Sources {
		asking.Go(func() { r.Sources[i] = checkSource(ctx, client, source) })
	}
	for i, sink := range cfg.Sinks {
		asking.Go(func() { r.Sinks[i] = checkSink(ctx, sink, names, cfg.Labels(), version) })
	}
	asking.Wait()
	r.Works = r.Err() == nil
	return r
}

func checkSink(ctx context.Context, cfg configs.Sink, sources []string, labels sinks.Labels, version string) Checked {
	c := Checked{Name: cfg.Name, Target: kindOf(cfg)}
	sink, err := newSink(cfg, labels, version, slog.New(slog.DiscardHandler))
	if err != nil {
		c.misconfigured("configuration", "%v", err)
		return c
	}
	c.take(sink.Check(ctx, sources))
	if err := sink.Close(); err != nil {
		c.fails("end", "%v", err)
	}
	return c
}

// take notes what a destination has told.
func (c *Checked) take(found []sinks.Finding) {
	for _, f := range found {
		switch {
		case errors.Is(f.Problem, sinks.ErrDenied):
			c.misconfigured(f.About, "%v", f.Problem)
		case f.Problem != nil:
			c.fails(f.About, "%v", f.Problem)
		case f.Unknown:
			c.unknown(f.About, "%s", f.Text)
		default:
			c.works(f.About, "%s", f.Text)
		}
	}
}

func kindOf(cfg configs.Sink) string {
	switch {
	case cfg.NATS != nil:
		return "nats"
	case cfg.Kafka != nil:
		return "kafka"
	default:
		return "webhook"
	}
}
