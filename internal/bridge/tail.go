package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
	"sparkbridge/sinks/redact"
)

// tailBytes is what the journal of a tail may take.
const tailBytes = 64 << 20

// Tail follows one source as a bridge does and hands those of its events that match to
// take, in their order and without credentials, until ctx ends, which is no error. The journal that it needs on the way is
// in a folder for temporary files, which it removes. An error of take ends it.
func Tail(ctx context.Context, cfg configs.Source, match sinks.Match, log *slog.Logger, version string, take func(listener.Event) error) (err error) {
	dir, err := os.MkdirTemp("", "bridge-tail-")
	if err != nil {
		return broken(fmt.Errorf("tail: %w", err))
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	j, err := journal.Open(dir, journal.Options{SegmentBytes: tailBytes / 8, MaxBytes: tailBytes})
	if err != nil {
		return broken(fmt.Errorf("tail: open journal: %w", err))
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	return tail(ctx, cfg, j, connect.NewClient(connect.ClientOptions{Log: log, Version: version}), log, wanted(match, take))
}

func tail(ctx context.Context, cfg configs.Source, j *journal.Journal, client *connect.Client, log *slog.Logger, take func(listener.Event) error) error {
	sources, err := openSources(ctx, []configs.Source{cfg}, client, j, log)
	if err != nil {
		return err
	}
	reader, err := j.NewReader(1)
	if err != nil {
		return broken(fmt.Errorf("tail: %w", err))
	}
	feeding, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	reading, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var running sync.WaitGroup
	var taken error
	running.Go(func() {
		taken = takeAll(reading, tape{reader}, take)
		abort(taken)
	})
	running.Go(func() {
		(&keeper{cfg: configs.Journal{MaxBytes: tailBytes}, journal: j, sources: sources, log: log}).run(reading)
	})
	err = follow(feeding, sources)
	stop()
	running.Wait()
	return errors.Join(err, taken, reader.Close())
}

// wanted hands on what matches, without credentials: it ends up in tickets.
func wanted(match sinks.Match, take func(listener.Event) error) func(listener.Event) error {
	return func(e listener.Event) error {
		if !match.Wants(&e) {
			return nil
		}
		return take(redact.Event(e))
	}
}

// takeAll hands out what the journal gets, until ctx ends.
func takeAll(ctx context.Context, t tape, take func(listener.Event) error) error {
	for {
		events, err := t.Next(ctx, 256, 4<<20)
		if ended(ctx) {
			return nil
		}
		if err != nil {
			return broken(fmt.Errorf("tail: %w", err))
		}
		for _, e := range events {
			if err := take(e); err != nil {
				return err
			}
		}
	}
}
