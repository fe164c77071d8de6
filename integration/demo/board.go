package main

import (
	"time"

	"sparkbridge/listener"
)

// sink is one of the two places where events arrive.
type sink int

const (
	natsSink sink = iota
	webhookSink
	sinkCount
)

func (s sink) String() string { return [...]string{"nats", "webhook"}[s] }

// patience is how long an event waits for the second sink before it is shown without it.
const patience = 2 * time.Second

// arrival is one event as one sink got it.
type arrival struct {
	sink  sink
	event event
	time  time.Time
}

// row is one event, with the sinks where it is.
type row struct {
	event event
	time  time.Time // when it first arrived
	at    [sinkCount]bool
	shown bool
}

// everywhere says that all sinks have it.
func (r *row) everywhere() bool { return r.at == [sinkCount]bool{true, true} }

// board makes one row of what the sinks get, in the order in which it first arrived.
type board struct {
	rows    map[string]*row // by the event's id
	waiting []*row          // to be shown
	repeats [sinkCount]int
	first   time.Time // when the first progress event arrived
}

func newBoard() *board { return &board{rows: map[string]*row{}} }

// add takes an arrival. One that comes after its row was shown makes it wait to be shown again.
func (b *board) add(a arrival) {
	r := b.rows[a.event.ID]
	if r == nil {
		r = &row{event: a.event, time: a.time}
		b.rows[a.event.ID] = r
		b.waiting = append(b.waiting, r)
		if b.first.IsZero() && r.event.Kind() == listener.KindProgress {
			b.first = a.time
		}
	}
	if r.at[a.sink] {
		b.repeats[a.sink]++
		return
	}
	r.at[a.sink] = true
	if r.shown {
		b.waiting = append(b.waiting, r)
	}
}

// ready takes the rows that can be shown now: those that are everywhere, or have waited long
// enough. A row never overtakes another.
func (b *board) ready(now time.Time) []row {
	var ready []row
	for len(b.waiting) > 0 {
		r := b.waiting[0]
		if !r.everywhere() && now.Sub(r.time) < patience {
			break
		}
		ready = append(ready, *r)
		r.shown = true
		b.waiting = b.waiting[1:]
	}
	return ready
}

// attached says that both sinks know that the bridge holds the bus.
func (b *board) attached() bool {
	for _, r := range b.rows {
		if r.event.Data.State == "attached" && r.everywhere() {
			return true
		}
	}
	return false
}

// ended says that the end of each run that the sinks know is at both of them.
func (b *board) ended() bool {
	open := map[string]bool{}
	for _, r := range b.rows {
		switch {
		case r.event.RunID == "":
		case r.event.Kind() == listener.KindTerminated && r.everywhere():
			open[r.event.RunID] = false
		case !seen(open, r.event.RunID):
			open[r.event.RunID] = true
		}
	}
	for _, is := range open {
		if is {
			return false
		}
	}
	return true
}

func seen(runs map[string]bool, id string) bool {
	_, found := runs[id]
	return found
}
