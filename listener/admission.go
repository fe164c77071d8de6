package listener

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sparkbridge/dedupe"
)

// Session names the job and the Spark Connect session that events belong to.
type Session struct {
	Source            string // configured name of the job
	UserID, SessionID string
}

// life is what is known of a run beside its marks.
type life struct {
	QueryID string `json:"queryId"`
	// UserID and SessionID are the session that the run is of.
	UserID    string `json:"userId,omitempty"`
	SessionID string `json:"sessionId,omitempty"`
	// Name is empty where the query has none, or it is not known yet.
	Name string `json:"name,omitempty"`
	// Last is the time of the run's latest event.
	Last time.Time `json:"last"`
	// First is the time of the run's earliest known batch.
	First time.Time `json:"first,omitzero"`
	// Owed says that Spark is still to be asked for all that it has of the run, Holey for
	// what it has from before the latest event: what comes later is on its way.
	Owed  bool `json:"owed,omitempty"`
	Holey bool `json:"holey,omitempty"`

	heard  time.Time // receipt of the latest event
	absent time.Time // since when the run is not active, zero while it is
	quiet  bool      // an idle event came after the last batch
	active bool      // Spark named it when it was last asked
	seen   time.Time // when Spark last named it as active
	// askAgain is when the run may be asked about, after an answer that was too large.
	askAgain time.Time
}

// Admission decides what the events of one session are: each of them once, a
// start before anything else of its run, names on events that lack them, jumps in
// batch ids named.
//
// Its marks move when an event is admitted. The Feed then has the event delivered,
// which repeats until it succeeds; a process that dies before that gets the event
// from Spark again.
type Admission struct {
	// mu is held from the admission of events until they are delivered, so that
	// nobody takes marks for durable whose events are not.
	mu sync.Mutex
	// torn says that a delivery was given up: the marks are ahead of what is kept.
	torn bool

	session   Session
	gapReason string
	now       func() time.Time
	marks     *dedupe.Marks
	lives     map[string]*life

	duplicates atomic.Uint64
	starts     starts
}

// NewAdmission returns an admission that has seen nothing.
func NewAdmission(s Session) *Admission {
	return &Admission{session: s, gapReason: GapNotReceived, now: time.Now, marks: dedupe.New(), lives: map[string]*life{}}
}

// Follow names the session that runs which are met from now on belong to. A job
// keeps its source name over its sessions.
func (a *Admission) Follow(s Session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.session = s
}

// read decodes a delivery.
func (a *Admission) read(d Delivery) []Event {
	events := make([]Event, len(d.Events))
	for i, r := range d.Events {
		events[i] = decode(r, a.now().UTC())
	}
	return events
}

// unseen says whether one of the events is of a run that was not seen before, so
// that Spark should be asked for its name.
func (a *Admission) unseen(events []Event) bool {
	return slices.ContainsFunc(events, func(e Event) bool {
		return e.RunID != "" && !a.marks.HasStarted(e.RunID)
	})
}

// names takes the names of queries that Spark has told.
func (a *Admission) names(queries []Query) {
	for _, l := range a.lives {
		l.active = false
	}
	for _, q := range queries {
		l := a.life(q.RunID)
		l.QueryID, l.Name, l.active, l.seen = q.ID, q.Name, true, a.now()
	}
}

// reveals says whether an event shows that something may be missing before it: it
// is the first of its run or its first batch (a query may go on from any), it leaves
// batches out, it says that there is nothing to do, or that it is over.
func (a *Admission) reveals(e Event) (what interest, ask bool) {
	if e.RunID == "" {
		return 0, false
	}
	if !a.marks.HasStarted(e.RunID) {
		return inAll, true
	}
	switch e.Kind {
	case KindProgress:
		mark := a.marks.Batch(e.RunID)
		return inBatches, mark < 0 || e.BatchID > mark+1
	case KindIdle:
		return inBatches, !a.life(e.RunID).quiet
	case KindTerminated:
		return inBatches, true
	default:
		return 0, false
	}
}

// admitOne decides about one event. answered says that Spark was asked for the
// batches that it leaves out, so that those which did not come are lost.
func (a *Admission) admitOne(e Event, answered bool) []Event {
	if e.RunID == "" {
		return a.once(e)
	}
	fresh, missing := a.mark(e)
	if !fresh {
		a.repeated(e)
		return nil
	}
	a.join(&e)
	out := a.started(e.RunID)
	if answered && !missing.Empty() {
		a.marks.Gap(e.RunID, missing)
		out = append(out, a.gap(e.RunID, missing))
	}
	return append(out, a.stamp(e))
}

// repeated counts what Spark delivered again.
func (a *Admission) repeated(e Event) {
	if e.Origin == OriginBus {
		a.duplicates.Add(1)
	}
}

// Duplicates counts the repeats on the bus that were not admitted.
func (a *Admission) Duplicates() uint64 { return a.duplicates.Load() }

// CountOn lets Duplicates go on from a count. It may be called before the first
// event.
func (a *Admission) CountOn(duplicates uint64) { a.duplicates.Store(duplicates) }

// mark moves the marks for an event; fresh is false for a repeat.
func (a *Admission) mark(e Event) (fresh bool, missing dedupe.Range) {
	missing = dedupe.Range{From: 0, To: -1}
	switch {
	case e.Kind == KindProgress && e.BatchID == NoBatch:
		return a.marks.Once(e.ID), missing
	case e.Kind == KindProgress:
		return a.marks.Progress(e.RunID, e.BatchID)
	case e.Kind == KindIdle:
		return a.marks.Idle(e.RunID, e.Time), missing
	case e.Kind == KindTerminated && e.Origin == OriginInferred:
		return a.marks.InferEnd(e.RunID, a.now()), missing
	case e.Kind == KindTerminated:
		return a.marks.Terminated(e.RunID, a.now()), missing
	case e.Kind == KindStarted:
		return a.marks.Started(e.RunID), missing
	default:
		return a.marks.Once(e.ID), missing
	}
}

// once admits an event that belongs to no run.
func (a *Admission) once(e Event) []Event {
	if !a.marks.Once(e.ID) {
		a.repeated(e)
		return nil
	}
	return []Event{a.stamp(e)}
}

// join completes an event and what is known of its run from each other. An end
// has no time of its own: it is the receipt, but never before the run's last
// event by Spark's clock.
func (a *Admission) join(e *Event) {
	l := a.life(e.RunID)
	if e.QueryID == "" {
		e.QueryID = l.QueryID
	}
	l.QueryID = e.QueryID
	switch {
	case e.Kind == KindProgress:
		l.Name = e.Name
	case e.Name == "":
		e.Name = l.Name
	}
	if e.Kind == KindTerminated && e.Time.Before(l.Last) {
		e.Time = l.Last
	}
	if e.Time.After(l.Last) {
		l.Last = e.Time
	}
	l.heard = a.now()
	switch e.Kind {
	case KindProgress:
		l.quiet = false
		if l.First.IsZero() || e.Time.Before(l.First) {
			l.First = e.Time
		}
	case KindIdle:
		l.quiet = true
	}
}

func (a *Admission) life(runID string) *life {
	l := a.lives[runID]
	if l == nil {
		l = &life{UserID: a.session.UserID, SessionID: a.session.SessionID}
		a.lives[runID] = l
	}
	return l
}

// stamp names the session of an event.
func (a *Admission) stamp(e Event) Event {
	e.Source, e.UserID, e.SessionID = a.session.Source, a.session.UserID, a.session.SessionID
	if e.RunID != "" {
		l := a.life(e.RunID)
		e.UserID, e.SessionID = l.UserID, l.SessionID
	}
	return e
}
