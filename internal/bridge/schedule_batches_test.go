package bridge

import (
	"fmt"
	"slices"
	"time"

	"sparkbridge/listener"
)

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
		case listener.KindGap:
			from, to = gapOf(e)
		case listener.KindProgress:
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
		case there && e.Kind == listener.KindProgress:
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
		if e.Kind == listener.KindProgress {
			return e.BatchID
		}
	}
	return 1 << 60
}

// must says why a batch has to be in the journal; empty where it need not. In a calm
// the bridge sees all that runs, asks for all that it knows of, and empties the bus.
func (o *judge) must(r *run, b *batch, known, until time.Time) string {
	for _, w := range o.calm {
		if w.to = earlier(w.to, until); w.to.Sub(w.from) < 2*slack || b.at.After(w.to.Add(-learning)) {
			continue
		}
		seen := r.began.Before(w.to.Add(-slack)) && (r.ended.IsZero() || r.ended.After(w.from.Add(slack)) && r.ended.Sub(r.began) > slack)
		seen = seen || !known.IsZero() && known.Before(w.to.Add(-slack))
		at := w.from
		if b.at.After(at) {
			at = b.at
		}
		if seen && !o.unheard(r, b) && o.tells(r, b, at.Add(slack)) && !o.masked(r, w.from, w.to) {
			return fmt.Sprintf("in the calm from %s to %s spark could tell it", o.s.since(w.from), o.s.since(w.to))
		}
		if op := b.emitted.OperationID; op != "" && !b.large && !o.s.job.held[op].Before(w.to.Add(-15*time.Second)) {
			return fmt.Sprintf("it was on the bus, which was held in the calm from %s to %s", o.s.since(w.from), o.s.since(w.to))
		}
	}
	return ""
}

// unheard says that the driver dropped a batch and the run has told nothing since: an
// open bus that is silent gives no reason to ask.
func (o *judge) unheard(r *run, b *batch) bool {
	later := slices.ContainsFunc(r.batches, func(x *batch) bool { return x.id > b.id && !x.dropped })
	later = later || slices.ContainsFunc(r.idles, func(x *rest) bool { return x.at.After(b.at) && !x.dropped })
	return b.dropped && !later && r.ended.IsZero()
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// tells says whether recent_progress has a batch at a moment.
func (o *judge) tells(r *run, b *batch, at time.Time) bool {
	return (!b.large || o.s.world.limit == "") && (b.trimmed.IsZero() || b.trimmed.After(at)) && (r.forgotten.IsZero() || r.forgotten.After(at))
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
