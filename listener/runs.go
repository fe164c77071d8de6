package listener

import (
	"slices"
	"strings"
)

// query names the run of an event.
func (a *Admission) query(e Event) Query {
	return Query{ID: e.QueryID, RunID: e.RunID, Name: e.Name}
}

// queryOf names a run.
func (a *Admission) queryOf(runID string) Query {
	l := a.life(runID)
	return Query{ID: l.QueryID, RunID: runID, Name: l.Name}
}

// predecessors returns the runs of the same query that have no end yet. A query has
// one run at a time: where events of an earlier one come late, the active one is not
// their predecessor.
func (a *Admission) predecessors(q Query) []Query {
	var old []Query
	for _, runID := range a.marks.Running() {
		if l := a.life(runID); runID != q.RunID && l.QueryID == q.ID && !l.active {
			old = append(old, a.queryOf(runID))
		}
	}
	return old
}

// unsettled returns the runs of which Spark is still to be asked, as far as they have
// started.
func (a *Admission) unsettled() []Query {
	var out []Query
	for _, runID := range a.marks.Incomplete() {
		a.life(runID).Holey = true
	}
	for runID, l := range a.lives {
		if (l.Owed || l.Holey) && a.marks.HasStarted(runID) {
			out = append(out, a.queryOf(runID))
		}
	}
	slices.SortFunc(out, func(x, y Query) int { return strings.Compare(x.RunID, y.RunID) })
	return out
}

// owing says whether Spark is still to be asked about a run.
func (a *Admission) owing() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, l := range a.lives {
		if l.Owed {
			return true
		}
	}
	return len(a.unsettled()) > 0
}

// owe notes that what happened to the running runs until now may be missing.
func (a *Admission) owe() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.oweAll()
}

func (a *Admission) oweAll() {
	for _, runID := range a.marks.Running() {
		a.life(runID).Owed = true
	}
}

// owes notes that Spark is still to be asked about what came before the latest event of
// a run, and if its first batch has just come, about those before it.
func (a *Admission) owes(runID string, first bool) {
	a.life(runID).Holey = true
	if first {
		a.marks.Unbegun(runID)
	}
}

// settled notes that nothing is left to ask for of a run.
func (a *Admission) settled(runID string) {
	l := a.life(runID)
	l.Owed, l.Holey = false, false
}

// startedAs returns an inferred start of the run of an event, if it has none yet.
func (a *Admission) startedAs(e Event) []Event {
	l := a.life(e.RunID)
	if l.QueryID == "" {
		l.QueryID = e.QueryID
	}
	if e.Kind == KindProgress {
		l.Name = e.Name
	}
	return a.started(e.RunID)
}

// Torn says that a delivery was given up: the marks are ahead of what is kept, and a
// new admission has to be made from that.
func (a *Admission) Torn() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.torn
}
