package bridge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
)

// slack is what an answer may take, so that what was so a moment ago still counts.
const slack = 30 * time.Second

// judge holds the journal against what the job did.
type judge struct {
	*watch
	s    *schedule
	calm spans
	runs map[string]*run
	seen map[string][]listener.Event // by run, in the order of the journal
}

// judge reports how the journal differs from the truth.
func (s *schedule) judge() {
	s.watch.calls(s.spark, s)
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
	o := &judge{watch: s.watch, s: s, calm: s.troubles.between(s.began, settle), runs: map[string]*run{}, seen: map[string][]listener.Event{}}
	for _, r := range s.job.runs {
		o.runs[r.id] = r
	}
	o.once(events)
	for _, r := range s.job.runs {
		o.run(r, o.seen[r.id])
	}
	s.count(events)
	if len(s.watch.problems) > 0 {
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
		case e.Kind == listener.BusState && (e.UserID != "u" || e.SessionID == ""):
			o.report("%s is of no session: %s", e.ID, e.Payload)
		case e.Kind == listener.BusState:
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
		if (e.Kind == listener.Started) != (i == 0) {
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
		if e.QueryID != r.query.id || e.Name != r.query.name && (e.Name != "" || e.Kind == listener.Progress) {
			o.report("%s names query %q %q", e.ID, e.QueryID, e.Name)
		}
		if e.Kind == listener.Progress && e.Origin == listener.OriginBus {
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
		if e.Kind != listener.Terminated {
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
	if ends == 0 && !r.ended.IsZero() && r.ended.Before(o.lastCalm().from) {
		o.report("%s ended at %s, and no end of it is in the journal", r.id, o.s.since(r.ended))
	}
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

// batches checks that each batch is there once, or in one gap that could not be
// avoided, or that nobody could know of it.
func (o *judge) batches(r *run, events []listener.Event, known time.Time) {
	truth := map[int64]*batch{}
	for _, b := range r.batches {
		truth[b.id] = b
	}
	had := map[int64]listener.Event{}
	highest := int64(-1)
	for _, e := range events {
		from, to := e.BatchID, e.BatchID
		switch e.Kind {
		case listener.Gap:
			from, to = gapOf(e)
		case listener.Progress:
			if b := truth[e.BatchID]; b == nil || string(e.Payload) != b.payload {
				o.report("%s has a payload that is not the job's: %.300s", e.ID, e.Payload)
			}
		default:
			continue
		}
		highest = max(highest, to)
		for id := from; id <= to; id++ {
			if other, twice := had[id]; twice {
				o.report("batch %d is in %s and in %s", id, other.ID, e.ID)
			}
			had[id] = e
		}
	}
	for id, e := range had {
		if truth[id] == nil {
			o.report("%s tells of batch %d, which never ran", e.ID, id)
		}
	}
	for _, b := range r.batches {
		e, there := had[b.id]
		switch {
		case there && e.Kind == listener.Progress:
		case there:
			o.gap(r, b, e, known)
		default:
			o.missing(r, b, known, highest)
		}
	}
}

// gap checks that a batch could not be had when it was given up.
func (o *judge) gap(r *run, b *batch, e listener.Event, known time.Time) {
	if masked := o.masked(r, e.Recorded, e.Recorded); !masked && o.tells(r, b, e.Recorded.Add(slack)) {
		o.report("%s at %s gives up batch %d of %s, which Spark could still tell (%s)", e.ID, o.s.since(e.Recorded), b.id, o.s.since(b.at), o.fate(r, b))
		return
	}
	if why := o.must(r, b, known, e.Recorded); why != "" {
		o.report("%s at %s gives up batch %d of %s, which should have been had: %s (%s)", e.ID, o.s.since(e.Recorded), b.id, o.s.since(b.at), why, o.fate(r, b))
	}
}

// missing checks that nobody could know of a batch that is not in the journal.
func (o *judge) missing(r *run, b *batch, known time.Time, highest int64) {
	if why := o.must(r, b, known, time.Now()); why != "" {
		o.report("%s:progress:%d of %s is missing: %s (%s)", r.id, b.id, o.s.since(b.at), why, o.fate(r, b))
		return
	}
	if open := o.masked(r, time.Now(), time.Now()) && r.ended.IsZero(); !open && !known.IsZero() && b.id < highest && b.id > o.firstOf(r) {
		o.report("%s:progress:%d of %s is missing without a gap (%s)", r.id, b.id, o.s.since(b.at), o.fate(r, b))
	}
}

// firstOf is the lowest batch id that the journal has of a run.
func (o *judge) firstOf(r *run) int64 {
	for _, e := range o.seen[r.id] {
		if e.Kind == listener.Progress {
			return e.BatchID
		}
	}
	return 1 << 60
}

// must says why a batch has to be in the journal; empty where it need not. In a calm
// the bridge sees all that runs, asks for all that it knows of, and empties the bus.
func (o *judge) must(r *run, b *batch, known, until time.Time) string {
	for _, w := range o.calm {
		if w.to = earlier(w.to, until); w.to.Sub(w.from) < 2*slack || b.at.After(w.to.Add(-2*slack)) {
			continue
		}
		seen := r.began.Before(w.to.Add(-slack)) && (r.ended.IsZero() || r.ended.After(w.from.Add(slack)) && r.ended.Sub(r.began) > slack)
		seen = seen || !known.IsZero() && known.Before(w.to.Add(-slack))
		at := w.from
		if b.at.After(at) {
			at = b.at
		}
		if seen && o.tells(r, b, at.Add(slack)) && !o.masked(r, w.from, w.to) {
			return fmt.Sprintf("in the calm from %s to %s spark could tell it", o.s.since(w.from), o.s.since(w.to))
		}
		if op := b.emitted.OperationID; op != "" && !b.large && !o.s.job.held[op].Before(w.to.Add(-15*time.Second)) {
			return fmt.Sprintf("it was on the bus, which was held in the calm from %s to %s", o.s.since(w.from), o.s.since(w.to))
		}
	}
	return ""
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// tells says whether recent_progress has a batch at a moment.
func (o *judge) tells(r *run, b *batch, at time.Time) bool {
	return !(b.large && o.s.world.limit != "") && (b.trimmed.IsZero() || b.trimmed.After(at)) && (r.forgotten.IsZero() || r.forgotten.After(at))
}

// masked says whether an answer about a run is too large to be received at some time.
func (o *judge) masked(r *run, from, to time.Time) bool {
	return o.s.world.limit != "" && slices.ContainsFunc(r.batches, func(b *batch) bool {
		return b.large && b.at.Before(to.Add(slack)) && (b.trimmed.IsZero() || b.trimmed.After(from.Add(-slack)))
	})
}

// fate is what became of a batch on Spark's side.
func (o *judge) fate(r *run, b *batch) string {
	s := fmt.Sprintf("operation %.8s", b.emitted.OperationID)
	if at := o.s.job.held[b.emitted.OperationID]; !at.IsZero() {
		s += fmt.Sprintf(" held until %s", o.s.since(at))
	}
	if b.large {
		s += ", large"
	}
	if !b.trimmed.IsZero() {
		s += fmt.Sprintf(", trimmed at %s", o.s.since(b.trimmed))
	}
	if !r.ended.IsZero() {
		s += fmt.Sprintf(", run ended at %s", o.s.since(r.ended))
	}
	if !r.forgotten.IsZero() {
		s += fmt.Sprintf(", forgotten at %s", o.s.since(r.forgotten))
	}
	return s
}

// idles checks that each idle event is the job's, and that those are there which were
// on a bus that was held and emptied.
func (o *judge) idles(r *run, events []listener.Event) {
	had := map[string]bool{}
	for _, e := range events {
		if e.Kind != listener.Idle {
			continue
		}
		had[e.ID] = true
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

// tell fails the test with all that is needed to understand it.
func (s *schedule) tell(events []listener.Event) {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: go test ./internal/bridge -run TestSchedules -seed %d -v\nserver %+v\nsource %+v%s\nsteps\n", s.seed, s.seed, s.world.options, s.world.source, s.world.limit)
	for _, t := range s.steps {
		fmt.Fprintf(&b, "  %s\n", t)
	}
	problems := s.watch.problems
	fmt.Fprintf(&b, "%d problems\n  %s\n", len(problems), strings.Join(problems[:min(len(problems), 25)], "\n  "))
	if *oneSeed != 0 {
		fmt.Fprintf(&b, "log (time zero is %s)\n%s", s.began.UTC().Format(time.RFC3339), s.log)
		for _, call := range s.spark.Calls() {
			if what := busCall(call); what != "" {
				fmt.Fprintf(&b, "%9s %s\n", s.since(call.At), what)
			}
		}
		for _, e := range events {
			fmt.Fprintf(&b, "%9s %5d %-9s %s %s\n", s.since(e.Recorded), e.Sequence, e.Origin, e.ID, e.Outcome)
		}
	}
	s.t.Error(b.String())
}

// count notes what happened, so that nobody takes a schedule for hard that is not.
func (s *schedule) count(events []listener.Event) {
	for what := range enough {
		s.hit[what] += s.log.count(what)
	}
	for _, e := range events {
		s.hit["kind "+string(e.Kind)]++
		s.hit["origin "+string(e.Origin)]++
		if e.Kind == listener.Terminated {
			s.hit[fmt.Sprintf("end %s %s", e.Origin, e.Outcome)]++
		}
		if e.Kind == listener.BusState {
			s.hit["state "+gjson.GetBytes(e.Payload, "state").Str]++
		}
	}
}
