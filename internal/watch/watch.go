// Package watch knows what goes on in the bridge, for whoever asks: the queries
// and their last numbers, how many events came and how they were delivered. It is
// fed with what the journal holds and holds nothing up; what it knows is bounded
// and is lost with the process.
package watch

import (
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"sparkbridge/listener"
)

const (
	// maxQueries bounds the queries that are known at a time.
	maxQueries = 1000
	// endedFor is how long an ended query is remembered.
	endedFor = 10 * time.Minute
	// maxClasses bounds the error classes that are told apart; jobs can make their own.
	maxClasses = 200
	// maxQueryEnds bounds the kinds of ends of one query that are told apart.
	maxQueryEnds = 20
	// otherClass stands for the classes beyond these.
	otherClass = "other"
)

// Board is what is known of the events that passed. Its methods may be called from
// any goroutine.
type Board struct {
	mu      sync.Mutex
	queries map[key]*Query
	labels  map[key]string // of queries by source and query id
	counts  Counts
	classes map[string]bool
}

// key names a query within a source: by its label, or by its id.
type key struct{ source, query string }

// EventKey tells apart which events are counted together.
type EventKey struct {
	Source string
	Kind   listener.Kind
	Origin listener.Origin
}

// EndKey tells apart which ends of runs are counted together.
type EndKey struct {
	Source string
	End
}

// ChangeKey names a source and the state that it came to.
type ChangeKey struct{ Source, State string }

// Counts are numbers since the start of the process.
type Counts struct {
	Events  map[EventKey]uint64
	Ends    map[EndKey]uint64
	Changes map[ChangeKey]uint64 // of the state of a source
	Gaps    map[string]uint64    // gap events by source
	Missing map[string]uint64    // batches that these name, by source
	// Unlisted counts the events of queries that were too many to be known.
	Unlisted uint64
}

// NewBoard returns a board on which nothing is.
func NewBoard() *Board {
	return &Board{
		queries: map[key]*Query{}, labels: map[key]string{}, classes: map[string]bool{},
		counts: Counts{
			Events: map[EventKey]uint64{}, Ends: map[EndKey]uint64{}, Changes: map[ChangeKey]uint64{},
			Gaps: map[string]uint64{}, Missing: map[string]uint64{},
		},
	}
}

// Observe takes the next event of the journal. One that is not news was there before
// this process started: it says how queries are, and is not counted.
func (b *Board) Observe(e listener.Event, news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if news {
		b.count(e)
	}
	if e.QueryID == "" && e.Name == "" {
		return
	}
	if q := b.query(e, news); q != nil {
		b.apply(q, e, news)
	}
}

func (b *Board) count(e listener.Event) {
	b.counts.Events[EventKey{e.Source, e.Kind, e.Origin}]++
	switch e.Kind {
	case listener.KindTerminated:
		b.counts.Ends[EndKey{e.Source, End{e.Outcome, b.class(e.ErrorClass)}}]++
	case listener.KindBus:
		b.counts.Changes[ChangeKey{e.Source, text(gjson.GetBytes(e.Payload, "state").String())}]++
	case listener.KindGap:
		b.counts.Gaps[e.Source]++
		between := gjson.GetManyBytes(e.Payload, "fromBatchId", "toBatchId")
		if n := between[1].Int() - between[0].Int() + 1; n > 0 {
			b.counts.Missing[e.Source] += uint64(n)
		}
	}
}

// class is an error class if there are not too many of them.
func (b *Board) class(name string) string {
	name = text(name)
	if name == "" || b.classes[name] {
		return name
	}
	if len(b.classes) >= maxClasses {
		return otherClass
	}
	b.classes[name] = true
	return name
}

// Counts returns a copy of the counts.
func (b *Board) Counts() Counts {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Counts{
		Events: clone(b.counts.Events), Ends: clone(b.counts.Ends), Changes: clone(b.counts.Changes),
		Gaps: clone(b.counts.Gaps), Missing: clone(b.counts.Missing), Unlisted: b.counts.Unlisted,
	}
}
