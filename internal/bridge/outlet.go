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
	// deliveries is the sink as the worker sees it.
	deliveries *watch.Deliveries
}

// openOutlets opens a worker for each sink; none connects before it runs.
func openOutlets(configured []configs.Sink, j *journal.Journal, version string, log *slog.Logger) ([]*outlet, error) {
	var outlets []*outlet
	for _, cfg := range configured {
		sink, err := newSink(cfg, version, log)
		if err != nil {
			return nil, usage(err)
		}
		reader, err := openTape(j, cfg.Name)
		if err != nil {
			return nil, broken(err)
		}
		watched := watch.WatchSink(sink)
		outlets = append(outlets, &outlet{
			name: cfg.Name, kind: kindOf(cfg), reader: reader, sink: sink, state: j.State(), deliveries: watched,
			worker: sinks.NewWorker(sinks.Options{
				Name: cfg.Name, Sink: watched, Source: tape{reader}, Cursor: cursor{j.State(), cfg.Name},
				Retry: sinks.Retry{Initial: cfg.Retry.Initial, Max: cfg.Retry.Max}, Log: log,
			}),
		})
	}
	return outlets, nil
}

func newSink(cfg configs.Sink, version string, log *slog.Logger) (sinks.Sink, error) {
	switch {
	case cfg.NATS != nil:
		return nats.New(*cfg.NATS, cfg.Name, log)
	case cfg.Kafka != nil:
		return kafka.New(*cfg.Kafka, cfg.Name, log)
	case cfg.Webhook != nil:
		return webhook.New(*cfg.Webhook, cfg.Name, version, log)
	default:
		return nil, fmt.Errorf("sink %s: one of nats, kafka and webhook must be set", cfg.Name)
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

// run delivers until ctx ends. An error means that the journal cannot be read.
func (o *outlet) run(ctx context.Context) error {
	err := o.worker.Run(ctx)
	err = errors.Join(err, o.sink.Close(), o.reader.Close())
	if ctx.Err() == nil && err != nil {
		return broken(err)
	}
	return nil
}

// has says whether everything before next is delivered.
func (o *outlet) has(next uint64) bool {
	cursor, _, err := o.state.Cursor(o.name)
	return err == nil && cursor >= next
}
