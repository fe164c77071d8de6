// Package bridge is the composition root: what exists, and who feeds whom.
//
//	connect.Bus ─▶ listener.Feed ─▶ journal ─▶ sinks.Worker ─▶ NATS, Kafka, webhook
//
// Each session is a supervised source and each destination a worker with its own
// cursor; all of them meet in the journal and nowhere else.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/internal/journal"
)

const (
	// catchUp is how long a stopping bridge waits for its sinks to deliver what the
	// sources have just brought. The rest is delivered after the next start.
	catchUp = 2 * time.Second
)

// Run runs the bridge until ctx ends, which is no error. An error that it returns
// has an exit code: 2 for what has to be mended in the configuration, 1 when the
// journal or a port cannot be used or no source can go on.
func Run(ctx context.Context, cfg *configs.Config, log *slog.Logger, version string) (err error) {
	f := newFace(version)
	if err := f.open(ctx, cfg.HTTP, log); err != nil { // before the journal: what is wrong here leaves no folder behind
		return err
	}
	defer f.close()
	j, err := journal.Open(cfg.Journal.Dir, journal.Options{
		MaxAge: cfg.Journal.MaxAge, MaxBytes: int64(cfg.Journal.MaxBytes), Log: log.With("journal", cfg.Journal.Dir),
		SegmentBytes: segmentBytes(int64(cfg.Journal.MaxBytes)), Written: f.wrote,
	})
	if err != nil {
		return broken(fmt.Errorf("open journal: %w", advised(err)))
	}
	defer func() { err = errors.Join(err, j.Close()) }()

	log.Info("bridge starts", "version", version, "journal", cfg.Journal.Dir, "sources", len(cfg.Sources), "sinks", len(cfg.Sinks))
	defer log.Info("bridge ends")
	client := connect.NewClient(connect.ClientOptions{Log: log, Version: version})
	return carry(ctx, cfg, j, client, log, f)
}

// segmentBytes is the size of the journal's segments: an eighth of what it may take,
// since only whole segments are deleted, and 64 MiB at most.
func segmentBytes(maxBytes int64) int64 {
	return min(max(maxBytes/8, 1<<20), 64<<20)
}

// carry makes the sources and the outlets, runs all of them, and ends them in the
// order in which the events go.
func carry(ctx context.Context, cfg *configs.Config, j *journal.Journal, client *connect.Client, log *slog.Logger, f *face) error {
	outlets, err := openOutlets(cfg, j, f.version, log)
	if err != nil {
		return err
	}
	sources, err := openSources(ctx, cfg.Sources, client, j, log)
	if err != nil {
		return err
	}
	kept := &keeper{cfg: cfg.Journal, journal: j, sources: sources, outlets: outlets, log: log}
	for _, s := range sources {
		s.room = kept.room
	}

	feeding, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	// The outlets outlive the sources, to deliver what these bring at their end.
	delivering, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, o := range outlets {
		running.Go(func() { abort(o.run(delivering)) })
	}
	running.Go(func() { kept.run(delivering) })
	server := f.show(j, sources, outlets, log)
	_, news := j.Bounds()
	running.Go(func() { f.observe(delivering, news, log) })
	running.Go(func() { f.serve(delivering, server, log) })
	running.Go(func() { serveSocket(delivering, cfg.Journal.Dir, newDesk(j, outlets, server), log) })
	running.Go(func() { tellSystemd(ctx, delivering, log) })

	err = follow(feeding, sources)
	drained(j, outlets)
	stop()
	running.Wait()
	return err
}

// follow runs all sources until each has ended, and returns the error that matters
// most. One whose configuration is wrong, or whose journal is gone, ends all.
func follow(ctx context.Context, sources []*source) error {
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	ends := make(chan error, len(sources))
	for _, s := range sources {
		go func() { ends <- s.run(ctx) }()
	}
	var worst error
	for range sources {
		err := <-ends
		worst = worse(worst, err)
		if isUsage(err) || errors.Is(err, journal.ErrGone) {
			abort(err)
		}
	}
	var cause *exitError
	if errors.As(context.Cause(ctx), &cause) {
		return cause
	}
	if ctx.Err() != nil {
		return nil
	}
	return worst
}

// drained waits until every sink has all that the journal holds, or it has been
// long enough.
func drained(j *journal.Journal, outlets []*outlet) {
	_, next := j.Bounds()
	patience := time.NewTimer(catchUp)
	defer patience.Stop()
	for _, o := range outlets {
		for !o.has(next) {
			select {
			case <-patience.C:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}
