package listener

import (
	"context"
	"errors"
	"time"
)

const (
	// pollFastest is the shortest time between two questions about one run.
	pollFastest = 100 * time.Millisecond
	// pollPatience is by how much polling slows down while nothing runs.
	pollPatience = 6
	// Of the documents that Spark keeps, a question that finds more new ones than
	// many came late, one that finds fewer than few came early.
	many, few = 40, 10
)

// pace is when a run is asked about.
type pace struct {
	every time.Duration
	due   time.Time
}

// Poll carries what Spark answers, until ctx ends or Spark answers that the session
// is no more; an error that has a method Definite tells so. It asks about a run as often as
// it takes to see all its batches before Spark drops them, and less often while
// nothing runs.
func (f *Feed) Poll(ctx context.Context) error {
	f.begin()
	f.Admission.owe()
	paces := map[string]*pace{}
	wait := f.AskEvery
	for {
		queries, err := f.active(ctx)
		next := f.askAgain
		switch {
		case err == nil && f.idle(queries):
			return ErrDetached
		case isAnswer(err):
			return err
		case err == nil:
			f.Admission.starts.wait(ctx)
			if err := f.settle(ctx, func() []Event { return f.poll(ctx, queries, paces) }); err != nil {
				return err
			}
			if wait = min(2*wait, pollPatience*f.AskEvery); len(queries) > 0 {
				wait = f.AskEvery
			}
			next = nextDue(paces, time.Now().Add(wait))
		}
		if err := f.pause(ctx, next); err != nil {
			return err
		}
	}
}

// isAnswer says whether an error is an answer of Spark's, and not a failure to ask.
func isAnswer(err error) bool {
	var answer interface{ Definite() bool }
	return errors.As(err, &answer) && answer.Definite()
}

// poll asks about the runs that are due.
func (f *Feed) poll(ctx context.Context, queries []Query, paces map[string]*pace) []Event {
	f.Admission.names(queries)
	var out []Event
	active := map[string]bool{}
	for _, q := range queries {
		active[q.RunID] = true
		out = append(out, f.visit(ctx, q, paces)...)
	}
	for runID := range paces {
		if !active[runID] {
			delete(paces, runID)
		}
	}
	return append(out, f.ends(ctx, queries)...)
}

// visit asks about one run, and sets its pace by what came.
func (f *Feed) visit(ctx context.Context, q Query, paces map[string]*pace) []Event {
	p := paces[q.RunID]
	if p == nil {
		p = &pace{every: min(time.Second, f.AskEvery)}
		paces[q.RunID] = p
	} else if time.Now().Before(p.due) {
		return nil
	}
	l := f.Admission.life(q.RunID)
	l.absent, l.Owed = time.Time{}, true // a bus that follows may not bring what is not answered now
	out := f.succeed(ctx, q)
	out = append(out, f.Admission.started(q.RunID)...)
	news := f.catchUp(ctx, q, OriginPoll)
	switch {
	case len(news) > many:
		p.every = max(p.every/4, pollFastest)
	case len(news) < few:
		p.every = min(2*p.every, f.AskEvery)
	}
	p.due = time.Now().Add(p.every)
	return append(out, news...)
}

// nextDue is when the next run is to be asked about, no later than latest.
func nextDue(paces map[string]*pace, latest time.Time) time.Time {
	for _, p := range paces {
		if p.due.Before(latest) {
			latest = p.due
		}
	}
	return latest
}

// pause waits until a time, or until a start of this process is to be told.
func (f *Feed) pause(ctx context.Context, until time.Time) error {
	waiting, done := f.Admission.starts.waiting(ctx)
	defer done()
	if err := sleepUntil(waiting, until); err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return f.settle(ctx, nothing)
}

func sleepUntil(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
