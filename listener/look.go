package listener

import (
	"context"
	"time"
)

// grace is how long a run must have been silent and absent from the active queries
// before its end is inferred: Spark's own may be on its way.
const grace = 30 * time.Second

// remembered is for how long Spark surely answers about a run that has ended: it does
// for an hour.
const remembered = 50 * time.Minute

// look asks which queries are active, and delivers what that reveals: starts of
// queries whose first batch takes long, batches that were lost, ends that nobody
// told.
func (f *Feed) look(ctx context.Context) error {
	queries, err := f.active(ctx)
	if err != nil {
		return nil //nolint:nilerr // no answer leaves the matter open
	}
	if f.idle(queries) {
		return ErrDetached
	}
	f.Admission.starts.wait(ctx) // what has just begun is told by its start
	if err := f.settle(ctx, func() []Event {
		f.Admission.names(queries)
		var out []Event
		for _, q := range queries {
			out = append(out, f.sight(q)...)
		}
		for _, q := range f.Admission.unsettled() {
			out = append(out, f.catchUp(ctx, q, OriginBackfill)...)
		}
		f.looked = true
		return append(out, f.ends(ctx, queries)...)
	}); err != nil {
		return err
	}
	f.asked()
	return nil
}

// asked tells when the first questions have been answered, once.
func (f *Feed) asked() {
	if f.caughtUp || f.Asked == nil || f.Admission.owing() {
		return
	}
	f.caughtUp = true
	f.Asked()
}

// sight takes a run that is active. On the bus, a run of the same query that has
// no end yet goes first: its end is on its way, or will be inferred. What a run did
// before the bus was ours is asked for; what it does later comes by the bus.
func (f *Feed) sight(q Query) []Event {
	a := f.Admission
	l := a.life(q.RunID)
	l.absent = time.Time{}
	if a.marks.HasStarted(q.RunID) {
		return nil
	}
	l.Owed = l.Owed || !f.looked
	if len(a.predecessors(q)) > 0 {
		return nil
	}
	return a.started(q.RunID)
}

// catchUp admits what Spark still tells of a run: all of it, or where what is later than
// the run's latest event is on its way by the bus, what is not.
func (f *Feed) catchUp(ctx context.Context, q Query, origin Origin) []Event {
	a := f.Admission
	told := f.recount(ctx, q, origin, inAll)
	ended := a.marks.HasEnded(q.RunID)
	if told.tooLarge && ended {
		told.answered = true // it stays too large
	}
	l := a.life(q.RunID)
	var before *Event
	if !l.Owed && !ended && origin != OriginPoll {
		before = &Event{Kind: KindIdle, Time: l.Last.Add(1)}
	}
	if told.answered {
		a.settled(q.RunID)
	}
	return a.relive(q.RunID, told, before)
}

// ends infers the ends of runs that are not active any more.
func (f *Feed) ends(ctx context.Context, queries []Query) []Event {
	a, now := f.Admission, f.Admission.now()
	active := map[string]bool{}
	for _, q := range queries {
		active[q.RunID] = true
	}
	var out []Event
	for _, runID := range a.marks.Running() {
		l := a.life(runID)
		switch {
		case active[runID]:
		case l.absent.IsZero():
			l.absent = now
		case now.Sub(l.absent) >= grace && now.Sub(l.heard) >= grace:
			out = append(out, f.end(ctx, a.queryOf(runID))...)
		}
	}
	return out
}

// succeed ends the runs that a new run of their query has replaced.
func (f *Feed) succeed(ctx context.Context, q Query) []Event {
	if f.Admission.marks.HasStarted(q.RunID) {
		return nil
	}
	var out []Event
	for _, old := range f.Admission.predecessors(q) {
		out = append(out, f.end(ctx, old)...)
	}
	return out
}

// end infers the end of one run from what Spark still holds of it. Without an
// answer it waits for the next time.
func (f *Feed) end(ctx context.Context, q Query) []Event {
	a := f.Admission
	told := f.recount(ctx, q, OriginBackfill, inAll)
	if !told.answered && !told.tooLarge {
		return nil
	}
	told.answered = true // of a run that has ended, nothing more can be had later
	failure, outcome, answered := f.failure(ctx, q)
	if !answered {
		return nil
	}
	if outcome == OutcomeUnknown && a.now().Sub(a.life(q.RunID).seen) < remembered {
		outcome = OutcomeDriverLost // what answers is another driver; Spark 3.5 shows it by nothing else
	}
	out := a.relive(q.RunID, told, nil)
	return append(out, a.inferEnd(q.RunID, outcome, failure)...)
}
