package listener

import (
	"encoding/json"
	"fmt"
	"sync"
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
	// Name is empty where the query has none, or it is not known yet.
	Name string `json:"name,omitempty"`
	// Last is the time of the run's latest event.
	Last time.Time `json:"last"`
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

	session Session
	now     func() time.Time
	marks   *dedupe.Marks
	lives   map[string]*life

	// duplicates counts the repeats that were not admitted.
	duplicates uint64
}

// NewAdmission returns an admission that has seen nothing.
func NewAdmission(s Session) *Admission {
	return &Admission{session: s, now: time.Now, marks: dedupe.New(), lives: map[string]*life{}}
}

// read decodes a delivery. unseen says that one of its runs was not seen before,
// which is when Spark should be asked for names before the events are admitted.
func (a *Admission) read(d Delivery) (events []Event, unseen bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range d.Events {
		e := decode(r, a.now().UTC())
		unseen = unseen || e.RunID != "" && !a.marks.HasStarted(e.RunID)
		events = append(events, e)
	}
	return events, unseen
}

// admit returns those of the events that are news, with what belongs before them,
// in order.
func (a *Admission) admit(events []Event) []Event {
	var out []Event
	for _, e := range events {
		out = append(out, a.admitOne(e)...)
	}
	return out
}

// active takes Spark's answer to which queries run: it learns their names, and
// returns an inferred start of those that nothing was seen of, in a stream whose
// first batch may take long.
func (a *Admission) active(queries []Query) []Event {
	var out []Event
	for _, q := range queries {
		l := a.life(q.RunID)
		l.QueryID, l.Name = q.ID, q.Name
		out = append(out, a.started(q.RunID)...)
	}
	return out
}

// admitOne decides about one event.
func (a *Admission) admitOne(e Event) []Event {
	if e.RunID == "" {
		return a.once(e)
	}
	fresh, missing := a.mark(e)
	if !fresh {
		a.duplicates++
		return nil
	}
	a.join(&e)
	out := a.started(e.RunID)
	if !missing.Empty() {
		out = append(out, a.gap(e, missing))
	}
	return append(out, a.stamp(e))
}

// mark moves the marks for an event; fresh is false for a repeat.
func (a *Admission) mark(e Event) (fresh bool, missing dedupe.Range) {
	missing = dedupe.Range{From: 0, To: -1}
	switch e.Kind {
	case Progress:
		if e.BatchID == NoBatch {
			return a.marks.Once(e.ID), missing
		}
		return a.marks.Progress(e.RunID, e.BatchID)
	case Idle:
		return a.marks.Idle(e.RunID, e.Time), missing
	case Terminated:
		return a.marks.Terminated(e.RunID, a.now()), missing
	case Started:
		return a.marks.Started(e.RunID), missing
	default:
		return a.marks.Once(e.ID), missing
	}
}

// once admits an event that belongs to no run.
func (a *Admission) once(e Event) []Event {
	if !a.marks.Once(e.ID) {
		a.duplicates++
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
	case e.Kind == Progress:
		l.Name = e.Name
	case e.Name == "":
		e.Name = l.Name
	}
	if e.Kind == Terminated && e.Time.Before(l.Last) {
		e.Time = l.Last
	}
	if e.Time.After(l.Last) {
		l.Last = e.Time
	}
}

func (a *Admission) life(runID string) *life {
	l := a.lives[runID]
	if l == nil {
		l = &life{}
		a.lives[runID] = l
	}
	return l
}

// stamp adds what all events of the session share.
func (a *Admission) stamp(e Event) Event {
	e.Source, e.UserID, e.SessionID = a.session.Source, a.session.UserID, a.session.SessionID
	return e
}

// started returns an inferred start of a run that has none yet. Its payload has
// the shape of Spark's started event, with null for what Spark did not say.
func (a *Admission) started(runID string) []Event {
	if !a.marks.Started(runID) {
		return nil
	}
	l, at := a.life(runID), a.now().UTC()
	payload := startedPayload{ID: l.QueryID, RunID: runID}
	if l.Name != "" {
		payload.Name = &l.Name
	}
	return []Event{a.stamp(Event{
		ID: startedID(runID, OriginInferred), Kind: Started, Origin: OriginInferred,
		QueryID: l.QueryID, RunID: runID, Name: l.Name, BatchID: NoBatch, Time: at,
		Payload: mustJSON(payload),
	})}
}

type startedPayload struct {
	ID        string  `json:"id"`
	RunID     string  `json:"runId"`
	Name      *string `json:"name"`
	Timestamp *string `json:"timestamp"`
}

// GapNotReceived is the reason of a gap in what the bus carried: the batches ran,
// but their events never came.
const GapNotReceived = "not_received"

type gapPayload struct {
	ID          string  `json:"id"`
	RunID       string  `json:"runId"`
	Name        *string `json:"name"`
	FromBatchID int64   `json:"fromBatchId"`
	ToBatchID   int64   `json:"toBatchId"`
	Reason      string  `json:"reason"`
	Timestamp   string  `json:"timestamp"`
}

// gap names the batches that are missing before e.
func (a *Admission) gap(e Event, missing dedupe.Range) Event {
	at := a.now().UTC()
	payload := gapPayload{
		ID: e.QueryID, RunID: e.RunID, FromBatchID: missing.From, ToBatchID: missing.To,
		Reason: GapNotReceived, Timestamp: at.Format(timestampLayout),
	}
	if e.Name != "" {
		payload.Name = &e.Name
	}
	return a.stamp(Event{
		ID: gapID(e.RunID, missing.From, missing.To), Kind: Gap, Origin: OriginBridge,
		QueryID: e.QueryID, RunID: e.RunID, Name: e.Name, BatchID: NoBatch, Time: at,
		Payload: mustJSON(payload),
	})
}

// timestampLayout is how Spark prints instants in its events.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// mustJSON encodes a value of a type of this package, which cannot fail.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return b
}
