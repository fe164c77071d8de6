package bridge

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
)

// slack is what an answer may take, so that what was so a moment ago still counts.
const slack = 30 * time.Second

// learning is how long it may take to learn of the last batch of a run by polling: the
// questions get rarer once nothing runs, and the end of the run has its grace.
const learning = 150 * time.Second

// judge holds the journal against what the job did.
type judge struct {
	*lookout
	s    *schedule
	calm spans
	runs map[string]*run
	seen map[string][]listener.Event // by run, in the order of the journal
}

// judge reports how the journal differs from the truth.
func (s *schedule) judge() {
	s.lookout.calls(s.spark, s)
	j, err := journal.Open(s.life.next(), journal.Options{})
	if err != nil {
		s.t.Fatalf("seed %d: %v", s.seed, err)
	}
	defer j.Close()
	events, err := readJournal(j, 1)
	if err != nil {
		s.t.Fatalf("seed %d: %v", s.seed, err)
	}
	settle := settling
	if s.world.source.Mode == configs.ModeBus {
		settle = settlingTaken
	}
	o := &judge{lookout: s.lookout, s: s, calm: s.troubles.between(s.began, settle), runs: map[string]*run{}, seen: map[string][]listener.Event{}}
	for _, r := range s.job.runs {
		o.runs[r.id] = r
	}
	o.once(events)
	for _, r := range s.job.runs {
		o.run(r, o.seen[r.id])
	}
	s.count(events)
	if len(s.lookout.problems) > 0 {
		s.tell(events)
	}
}

// once checks ids, and sorts the events by run.
func (o *judge) once(events []listener.Event) {
	ids := map[string]bool{}
	for _, e := range events {
		if ids[e.ID] {
			o.report("%s is in the journal twice", e.ID)
		}
		ids[e.ID] = true
		switch {
		case e.Kind == listener.KindBus && (e.UserID != "u" || e.SessionID == ""):
			o.report("%s is of no session: %s", e.ID, e.Payload)
		case e.Kind == listener.KindBus:
		case o.runs[e.RunID] == nil:
			o.report("%s is of no run of the job", e.ID)
		default:
			o.seen[e.RunID] = append(o.seen[e.RunID], e)
		}
	}
}

// run checks what the journal has of one run.
func (o *judge) run(r *run, events []listener.Event) {
	known := time.Time{}
	if len(events) > 0 {
		known = events[0].Recorded
		o.start(r, events)
		o.facts(r, events)
		o.end(r, events)
	}
	o.batches(r, events, known)
	o.idles(r, events)
}

// start checks that exactly one start comes first.
func (o *judge) start(r *run, events []listener.Event) {
	for i, e := range events {
		if (e.Kind == listener.KindStarted) != (i == 0) {
			o.report("%s is event %d of its run", e.ID, i)
		}
	}
	if first := events[0]; first.Recorded.Before(r.began) || first.Origin != listener.OriginInferred {
		o.report("%s at %s, and the run began at %s", first.ID, o.s.since(first.Recorded), o.s.since(r.began))
	}
}

// facts checks what stands beside the payloads, and the order of what the bus brought.
func (o *judge) facts(r *run, events []listener.Event) {
	last := int64(-1)
	for _, e := range events {
		if e.QueryID != r.query.id || e.Name != r.query.name && (e.Name != "" || e.Kind == listener.KindProgress) {
			o.report("%s names query %q %q", e.ID, e.QueryID, e.Name)
		}
		if e.Kind == listener.KindProgress && e.Origin == listener.OriginBus {
			if e.BatchID <= last {
				o.report("%s came over the bus after batch %d", e.ID, last)
			}
			last = e.BatchID
		}
	}
}

// end checks that a run which is over, and only such a one, has one end of each sort at
// most, and the right one.
func (o *judge) end(r *run, events []listener.Event) {
	ends := 0
	for i, e := range events {
		if e.Kind != listener.KindTerminated {
			continue
		}
		ends++
		switch {
		case r.ended.IsZero() || e.Recorded.Before(r.ended):
			o.report("%s at %s, but the run ended at %s", e.ID, o.s.since(e.Recorded), o.s.since(r.ended))
		case e.Origin == listener.OriginInferred:
			o.inferred(r, e, ends)
		case string(e.Payload) != r.terminated.JSON:
			o.report("%s has payload %s, want %s", e.ID, e.Payload, r.terminated.JSON)
		default:
			o.last(events[i+1:])
		}
	}
	if ends == 0 && !r.ended.IsZero() && o.known(r) {
		o.report("%s ended at %s, and no end of it is in the journal", r.id, o.s.since(r.ended))
	}
}

// known says whether the bridge must know that a run which it has met has ended. Of a
// session that it has left it knows what it saw before; when it leaves it asks once
// more, which may meet trouble. That a session was closed the server knows for as long as
// it lives.
func (o *judge) known(r *run) bool {
	moved := o.s.moved[r.session]
	if moved.IsZero() || r.closed && o.s.driverStopped.Before(r.ended) {
		return r.ended.Before(o.lastCalm().from) && moved.Before(o.lastCalm().from)
	}
	if !o.s.blind.touch(span{r.ended.Add(-settling), moved.Add(slack)}) {
		return true
	}
	return slices.ContainsFunc(o.calm, func(w span) bool { return r.ended.Before(w.from) && w.from.Before(moved) })
}

func (o *judge) lastCalm() span { return o.calm[len(o.calm)-1] }

// last checks that after Spark's own end nothing more came over the bus.
func (o *judge) last(events []listener.Event) {
	for _, e := range events {
		if e.Origin == listener.OriginBus {
			o.report("%s came after the end of its run", e.ID)
		}
	}
}

// inferred checks an inferred end.
func (o *judge) inferred(r *run, e listener.Event, ends int) {
	if ends > 1 {
		o.report("%s came after Spark's own end", e.ID)
	}
	gone := !r.forgotten.IsZero() && !e.Recorded.Before(r.forgotten)
	right := map[listener.Outcome]bool{
		listener.OutcomeFailed:        r.exception != "",
		listener.OutcomeStopped:       r.exception == "" && !r.driverDied && !r.closed,
		listener.OutcomeDriverLost:    gone,
		listener.OutcomeSessionClosed: gone,
		listener.OutcomeUnknown:       gone,
	}
	exception := gjson.GetBytes(e.Payload, "exception")
	if !right[e.Outcome] || exception.Type != gjson.Null && exception.Str != r.exception {
		o.report("%s has outcome %s and payload %s; the run ended at %s with %q, driver died: %v, session closed: %v", e.ID, e.Outcome, e.Payload,
			o.s.since(r.ended), r.exception, r.driverDied, r.closed)
	}
}

// idles checks that each idle event is the job's, and that those are there which were
// on a bus that was held and emptied.
func (o *judge) idles(r *run, events []listener.Event) {
	had := map[string]bool{}
	for _, e := range events {
		if e.Kind != listener.KindIdle {
			continue
		}
		had[e.ID] = true
		if r.full && e.Origin != listener.OriginBus && e.Time.Before(r.batches[0].at) {
			continue // whether documents were dropped before it nobody can tell
		}
		if !slices.ContainsFunc(r.idles, func(i *rest) bool { return i.at.Equal(e.Time) && i.payload == string(e.Payload) }) {
			o.report("%s is not of the job: %s", e.ID, e.Payload)
		}
	}
	for _, i := range r.idles {
		op := i.emitted.OperationID
		id := fmt.Sprintf("%s:idle:%d", r.id, i.at.UnixMilli())
		for _, w := range o.calm {
			if op != "" && !had[id] && i.at.Before(w.to.Add(-2*slack)) && w.to.Sub(w.from) > 2*slack && !o.s.job.held[op].Before(w.to.Add(-15*time.Second)) {
				o.report("%s of %s is missing, which was on a bus that was held in the calm to %s", id, o.s.since(i.at), o.s.since(w.to))
				break
			}
		}
	}
}
