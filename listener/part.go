package listener

import (
	"context"
	"slices"
)

// EndAll infers the ends of all runs, since their session is no more.
func (f *Feed) EndAll(ctx context.Context, outcome Outcome) error {
	return f.settle(ctx, func() []Event {
		var out []Event
		for _, q := range f.Admission.unsettled() {
			f.Admission.settled(q.RunID)
			out = append(out, f.Admission.giveUp(q.RunID)...)
		}
		for _, runID := range f.Admission.marks.Running() {
			out = append(out, f.Admission.inferEnd(runID, outcome, nil)...)
		}
		return out
	})
}

// Leave asks a session that will not be followed any more, once, for all that it has
// still to tell: the last batches, and the ends of the runs that are over. The stream
// must have been drained. An error says that Spark did not answer, or that the session
// is no more, which Definite tells.
func (f *Feed) Leave(ctx context.Context) error {
	queries, err := f.active(ctx)
	if err != nil {
		return err
	}
	return f.settle(ctx, func() []Event {
		a := f.Admission
		a.names(queries)
		a.oweAll()
		var out []Event
		for _, q := range a.unsettled() {
			out = append(out, f.catchUp(ctx, q, OriginBackfill)...)
		}
		for _, runID := range a.marks.Running() {
			if !a.life(runID).active {
				out = append(out, f.end(ctx, a.queryOf(runID))...)
			}
		}
		return out
	})
}

// Left returns the sessions that were followed earlier and whose runs are not settled.
func (a *Admission) Left() []Session {
	a.mu.Lock()
	defer a.mu.Unlock()
	var left []Session
	for _, runID := range append(a.marks.Running(), a.marks.Incomplete()...) {
		if s := a.sessionOf(runID); s != a.session && !slices.Contains(left, s) {
			left = append(left, s)
		}
	}
	return left
}

// Part lets go of the runs of a session that was followed earlier. Nothing can be asked
// about them any more, so what they lack is given up. Where it is known how they ended
// outcome says so; with an empty one they may go on, and no end is inferred.
func (f *Feed) Part(ctx context.Context, from Session, outcome Outcome) error {
	return f.settle(ctx, func() []Event {
		a := f.Admission
		var out []Event
		for _, q := range a.unsettled() {
			if a.sessionOf(q.RunID) == from {
				a.settled(q.RunID)
				out = append(out, a.giveUp(q.RunID)...)
			}
		}
		for _, runID := range a.marks.Running() {
			switch {
			case a.sessionOf(runID) != from:
			case outcome == "":
				a.marks.InferEnd(runID, a.now())
			default:
				out = append(out, a.inferEnd(runID, outcome, nil)...)
			}
		}
		return out
	})
}

func (a *Admission) sessionOf(runID string) Session {
	l := a.life(runID)
	return Session{Source: a.session.Source, UserID: l.UserID, SessionID: l.SessionID}
}
