package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
	"sparkbridge/internal/watch"
	"sparkbridge/sinks"
	"sparkbridge/sinks/kafka"
	"sparkbridge/sinks/nats"
	"sparkbridge/sinks/redact"
	"sparkbridge/sinks/webhook"
)

// outlet is one configured sink: where it reads, what drives it, where it sends.
type outlet struct {
	name   string
	kind   string // of the destination
	reader *journal.Reader
	sink   sinks.Sink
	worker *sinks.Worker
	state  *journal.State
	cfg    configs.Sink
	spool  *spool
	// letters and replays are what commands work on.
	letters *letters
	replays *replays
	// deliveries is the sink as the worker sees it.
	deliveries *watch.Deliveries
}

// openOutlets opens a worker for each sink; none connects before it runs.
func openOutlets(configured *configs.Config, j *journal.Journal, version string, log *slog.Logger) ([]*outlet, error) {
	var outlets []*outlet
	for _, cfg := range configured.Sinks {
		sink, err := newSink(cfg, configured.Labels(), version, log)
		if err != nil {
			return nil, usage(err)
		}
		o, err := openOutlet(cfg, sink, j, log)
		if err != nil {
			return nil, broken(err)
		}
		outlets = append(outlets, o)
	}
	return outlets, nil
}

// destination is a sink that can be asked before it is used.
type destination interface {
	sinks.Sink
	asked
}

func openOutlet(cfg configs.Sink, sink sinks.Sink, j *journal.Journal, log *slog.Logger) (*outlet, error) {
	dead, err := openLetters(j.State(), cfg.Name, cfg.DeadLetters.Max, log)
	if err != nil {
		return nil, err
	}
	reader, err := openTape(j, cfg.Name, cfg.From)
	if err != nil {
		return nil, err
	}
	spool, err := openSpool(j, reader, cfg.Name, cfg.Match, log)
	if err != nil {
		return nil, errors.Join(err, reader.Close())
	}
	watched, again := watch.WatchSink(sink), &replays{journal: j, sink: cfg}
	worker := sinks.NewWorker(sinks.Options{
		Name: cfg.Name, Sink: masked(cfg, watched), Source: spool, Cursor: cursor{j.State(), cfg.Name},
		Retry: sinks.Retry{Initial: cfg.Retry.Initial, Max: cfg.Retry.Max}, Log: log,
		Match: cfg.Match, ProgressEvery: cfg.ProgressEvery, MaxAge: cfg.MaxAge,
		GiveUp: cfg.GiveUp, Letters: dead, Replays: again,
	})
	spool.settled = worker.Settled
	return &outlet{
		name: cfg.Name, kind: kindOf(cfg), reader: reader, sink: sink, state: j.State(), deliveries: watched,
		cfg: cfg, spool: spool, letters: dead, replays: again, worker: worker,
	}, nil
}

// masked delivers without credentials, unless the sink is to have them. They are masked
// before anything is cut or put into a form, and at each attempt: the journal and the
// dead letters keep what Spark has sent.
func masked(cfg configs.Sink, s sinks.Sink) sinks.Sink {
	if cfg.Redact {
		return redact.Sink(s)
	}
	return s
}

func newSink(cfg configs.Sink, labels sinks.Labels, version string, log *slog.Logger) (destination, error) {
	switch {
	case cfg.NATS != nil:
		c := *cfg.NATS
		c.Format, c.Labels = cfg.Format, labels
		return nats.New(c, cfg.Name, log)
	case cfg.Kafka != nil:
		c := *cfg.Kafka
		c.Format, c.Labels = cfg.Format, labels
		return kafka.New(c, cfg.Name, log)
	case cfg.Webhook != nil:
		c := *cfg.Webhook
		c.Format = cfg.Format
		return webhook.New(c, cfg.Name, version, log)
	default:
		return nil, fmt.Errorf("sink %s: one of nats, kafka and webhook must be set", cfg.Name)
	}
}

// run delivers until ctx ends. An error means that the journal cannot be read.
func (o *outlet) run(ctx context.Context) error {
	err := o.worker.Run(ctx)
	err = errors.Join(err, o.spool.tidy(context.WithoutCancel(ctx)), o.sink.Close(), o.reader.Close())
	if ctx.Err() == nil && err != nil {
		return broken(err)
	}
	return nil
}

// has says whether everything before next is delivered, or waits for something else
// than the destination.
func (o *outlet) has(next uint64) bool {
	if w := o.worker.State(); w.Read >= next && w.Open <= w.Held+w.Aside {
		return true
	}
	cursor, _, err := o.state.Cursor(o.name)
	return err == nil && cursor >= next
}
