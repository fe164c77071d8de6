package sinks

import (
	"time"

	"sparkbridge/listener"
)

const (
	// settle is how long after the end of a period its newest progress event is
	// waited for: an event gets its time a little before it can be read.
	settle = time.Second
	// maxHeld bounds what is held back, in events and in bytes; above it the
	// query that waits longest is let go early.
	maxHeld      = 4096
	maxHeldBytes = 16 << 20
)

// thinner lets through at most one progress event per query and period, the
// newest, and everything else.
//
// Periods are fixed parts of the time at which the journal took events: with 30s
// they begin at :00 and :30. A progress event is held back until its period is
// over, and goes when a newer one of its query and period comes. What passes thus
// follows from the journal alone, and is the same after a restart. An idle event
// waits behind the one that is held. Any other event of the query ends the period
// early: the held one goes first, so the last progress of a run always arrives.
//
// The zero period lets everything through.
type thinner struct {
	period time.Duration
	held   map[string]*heldBack // by query
	events int
	bytes  int
}

// heldBack is what one query waits with: a progress event, and idle ones behind it.
type heldBack struct {
	events []listener.Event
	until  time.Time // end of the period
}

func newThinner(period time.Duration) *thinner {
	return &thinner{period: period, held: map[string]*heldBack{}}
}

// offer takes the next event of the journal. It calls pass for what goes on now, in
// order, and drop for what a newer event makes superfluous.
func (t *thinner) offer(e listener.Event, pass, drop func(listener.Event)) {
	if t.period <= 0 || e.QueryID == "" {
		pass(e)
		return
	}
	h := t.held[e.QueryID]
	if h != nil && !e.Recorded.Before(h.until) {
		t.release(e.QueryID, pass)
		h = nil
	}
	switch {
	case e.Kind == listener.KindProgress:
		t.replace(e, pass, drop)
	case e.Kind == listener.KindIdle && h != nil:
		t.hold(h, e)
	default:
		t.release(e.QueryID, pass)
		pass(e)
	}
	for t.events > maxHeld || t.bytes > maxHeldBytes {
		t.release(t.longest(), pass)
	}
}

// replace holds a progress event in the place of the one before, whose followers go.
func (t *thinner) replace(e listener.Event, pass, drop func(listener.Event)) {
	if h := t.held[e.QueryID]; h != nil {
		drop(h.events[0])
		t.forget(h.events[0])
		h.events = h.events[1:]
		t.release(e.QueryID, pass)
	}
	begin := e.Recorded.Truncate(t.period)
	h := &heldBack{until: begin.Add(t.period)}
	t.held[e.QueryID] = h
	t.hold(h, e)
}

func (t *thinner) hold(h *heldBack, e listener.Event) {
	h.events = append(h.events, e)
	t.events++
	t.bytes += len(e.Payload)
}

func (t *thinner) forget(e listener.Event) {
	t.events--
	t.bytes -= len(e.Payload)
}

// release lets go of what a query waits with.
func (t *thinner) release(query string, pass func(listener.Event)) {
	h := t.held[query]
	if h == nil {
		return
	}
	delete(t.held, query)
	for _, e := range h.events {
		t.forget(e)
		pass(e)
	}
}

// elapsed lets go of all whose period is over.
func (t *thinner) elapsed(now time.Time, pass func(listener.Event)) {
	for {
		query := t.longest()
		if query == "" || now.Before(t.held[query].until.Add(settle)) {
			return
		}
		t.release(query, pass)
	}
}

// flush lets go of everything, at the end of a range.
func (t *thinner) flush(pass func(listener.Event)) {
	for query := t.longest(); query != ""; query = t.longest() {
		t.release(query, pass)
	}
}

// next is when elapsed has something to do, zero for never.
func (t *thinner) next() time.Time {
	query := t.longest()
	if query == "" {
		return time.Time{}
	}
	return t.held[query].until.Add(settle)
}

// longest is the query that waits for the earliest end, among equals with the
// earliest event; empty if none waits.
func (t *thinner) longest() (query string) {
	var first *heldBack
	for q, h := range t.held {
		if first == nil || h.until.Before(first.until) ||
			h.until.Equal(first.until) && h.events[0].Sequence < first.events[0].Sequence {
			query, first = q, h
		}
	}
	return query
}
