package connect

import (
	"context"
	"errors"
	"strings"
	"time"

	"sparkbridge/listener"
)

const (
	// How often a query that is drained is asked how far it is.
	drainEvery = 200 * time.Millisecond
	// How long a query has to stop, when it has to stop in any case: it ends its batch first.
	stopTime = time.Minute
)

// ErrNotCaughtUp is a query that was stopped at the limit of its drain, with data left.
var ErrNotCaughtUp = errors.New("the query was stopped before it had caught up")

// DrainOptions bound a drain. The zero value has no bound.
type DrainOptions struct {
	// Limit is for sources that never end: after so long the query is stopped in any case, and
	// the error is ErrNotCaughtUp. 0 is no limit.
	Limit time.Duration
	// Progress is told each batch that Spark has finished while it is waited for; nil is allowed.
	Progress func(*listener.Progress)
}

// Drain waits until the run has processed what its sources have, and stops it. It never
// stops a run before Spark has looked for data once: a trigger must have found nothing
// more. A run that ends by itself (AvailableNow, Once) is drained by that; one that has
// failed is a *QueryError. A continuous one never catches up, so give it a limit. When ctx
// ends the run goes on, and the error is that of ctx.
func (q *StreamingQuery) Drain(ctx context.Context, o DrainOptions) error {
	began, seen := time.Now(), watermark{}
	for {
		status, err := q.Status(ctx)
		if err == nil {
			err = q.tell(ctx, o.Progress, &seen)
		}
		switch {
		case err != nil:
			return err
		case !status.IsActive:
			return q.ended(ctx)
		case status.caughtUp():
			return q.halt(ctx, o, &seen, nil)
		case o.Limit > 0 && time.Since(began) >= o.Limit:
			return q.halt(ctx, o, &seen, ErrNotCaughtUp)
		}
		if err := sleep(ctx, drainEvery); err != nil {
			return err
		}
	}
}

// caughtUp says that the last trigger has found nothing: the run waits for the next one, or
// for data. Before the first trigger there is no data either, and a continuous query never
// has a trigger.
func (s Status) caughtUp() bool {
	return !s.IsDataAvailable && !s.IsTriggerActive && strings.HasPrefix(s.Message, "Waiting")
}

// halt stops the run and tells its last batches.
func (q *StreamingQuery) halt(ctx context.Context, o DrainOptions, seen *watermark, reason error) error {
	if err := q.Stop(ctx); err != nil {
		return err
	}
	if err := q.tell(ctx, o.Progress, seen); err != nil {
		return err
	}
	if err := q.ended(ctx); err != nil {
		return err
	}
	return reason
}

// ended is how a run has ended that is not active any more.
func (q *StreamingQuery) ended(ctx context.Context) error {
	failed, err := q.Exception(ctx)
	if failed != nil {
		return failed
	}
	return err
}

// watermark is up to which batch the progress of a run was told.
type watermark struct{ next int64 }

// tell tells the batches that were not told before.
func (q *StreamingQuery) tell(ctx context.Context, told func(*listener.Progress), seen *watermark) error {
	if told == nil {
		return nil
	}
	last, err := q.LastProgress(ctx)
	if err != nil || last == nil || last.BatchID < seen.next {
		return err
	}
	recent, err := q.RecentProgress(ctx)
	if err != nil {
		return err
	}
	for _, p := range recent {
		// An idle trigger is told under the number of the batch that comes next.
		if p.BatchID < seen.next || p.Idle() {
			continue
		}
		seen.next = p.BatchID + 1
		told(p)
	}
	return nil
}
