package watch

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"sparkbridge/listener"
)

// longestLabel bounds what names a query, in bytes.
const longestLabel = 200

// End is how a run ended.
type End struct {
	Outcome    listener.Outcome
	ErrorClass string // empty where there is none
}

// Query is a query as its last events show it. Its runs follow each other; a name is
// the same query over all of them. The names in JSON are Spark's own where it has
// them.
type Query struct {
	Source string `json:"source"`
	// Label is its name, or its id where it has none.
	Label    string `json:"query"`
	ID       string `json:"id"`
	RunID    string `json:"runId"`
	IsActive bool   `json:"isActive"`
	// Numbers are those of the last batch.
	Numbers
	// LastProgress is the start of the last trigger that had data, LastEvent the time
	// of the last event of any kind; by Spark's clock, zero where there was none.
	LastProgress time.Time `json:"lastProgress,omitzero"`
	LastEvent    time.Time `json:"lastEvent,omitzero"`
	// Ended is when its last run to end did so, zero if none has; Outcome and
	// ErrorClass say how.
	Ended      time.Time        `json:"ended,omitzero"`
	Outcome    listener.Outcome `json:"outcome,omitempty"`
	ErrorClass string           `json:"errorClass,omitempty"`

	// Since the process started, or the query was first seen:

	Batches  uint64 `json:"batches"`
	Rows     uint64 `json:"rows"`
	LateRows uint64 `json:"lateRows"`
	// Ends counts the ends of its runs.
	Ends map[End]uint64 `json:"-"`

	gone time.Time // when the end was recorded, zero while active
}

// query returns what is known of the event's query, nil if there is no room; news that
// have none are counted.
func (b *Board) query(e listener.Event, news bool) *Query {
	id, label := key{e.Source, e.QueryID}, text(e.QueryLabel())
	if known := b.labels[id]; e.Name == "" && known != "" {
		label = known
	}
	k := key{e.Source, label}
	if q := b.queries[k]; q != nil {
		if q.ID != e.QueryID {
			delete(b.labels, key{e.Source, q.ID}) // of an earlier query of that name
		}
		b.labels[id] = label
		return q
	}
	known := key{e.Source, b.labels[id]}
	if q := b.queries[known]; q != nil { // by its id, until its name came
		delete(b.queries, known)
		q.Label, b.queries[k], b.labels[id] = label, q, label
		return q
	}
	q := b.newQuery(k, id)
	if q == nil && news {
		b.counts.Unlisted++
	}
	return q
}

// newQuery makes one, unless there are too many.
func (b *Board) newQuery(k, id key) *Query {
	if len(b.queries) >= maxQueries {
		b.forget(time.Now())
	}
	if len(b.queries) >= maxQueries {
		return nil
	}
	q := &Query{Source: k.source, Label: k.query, Ends: map[End]uint64{{Outcome: listener.OutcomeStopped}: 0}}
	q.BatchID = listener.NoBatch
	b.queries[k], b.labels[id] = q, k.query
	return q
}

// apply moves the query on by an event.
func (b *Board) apply(q *Query, e listener.Event, news bool) {
	if e.Kind == listener.KindTerminated {
		b.end(q, e, news)
		return
	}
	if e.RunID != q.RunID {
		q.ID, q.RunID, q.IsActive, q.gone = e.QueryID, e.RunID, true, time.Time{}
	}
	if e.Kind != listener.KindGap && e.Time.After(q.LastEvent) {
		q.LastEvent = e.Time
	}
	if e.Kind != listener.KindProgress {
		return
	}
	q.LastProgress = e.Time
	q.Numbers = readNumbers(e)
	if news {
		q.Batches++
		q.Rows += uint64(max(q.InputRows, 0))
		q.LateRows += uint64(max(q.lateRows, 0))
	}
}

// end notes the end of a run. That of an earlier run says nothing of the present one,
// and a second word on one end, Spark's own after an inferred one, counts as no other.
func (b *Board) end(q *Query, e listener.Event, news bool) {
	again := e.RunID == q.RunID && !q.IsActive && !q.Ended.IsZero()
	q.Ended, q.Outcome, q.ErrorClass = e.Time, e.Outcome, b.class(e.ErrorClass)
	if news && !again {
		q.count(End{q.Outcome, q.ErrorClass})
	}
	if q.RunID == "" {
		q.ID, q.RunID = e.QueryID, e.RunID
	}
	if e.RunID != q.RunID {
		return
	}
	q.IsActive, q.LastEvent = false, e.Time
	if q.gone = e.Recorded; q.gone.IsZero() {
		q.gone = time.Now()
	}
}

// count counts an end, under its own class unless the query has had too many others.
func (q *Query) count(end End) {
	if _, known := q.Ends[end]; !known && len(q.Ends) >= maxQueryEnds {
		end.ErrorClass = otherClass
	}
	q.Ends[end]++
}

// forget drops the queries that ended long ago.
func (b *Board) forget(now time.Time) {
	for k, q := range b.queries {
		if !q.IsActive && now.Sub(q.gone) > endedFor {
			delete(b.queries, k)
		}
	}
	maps.DeleteFunc(b.labels, func(id key, label string) bool { return b.queries[key{id.source, label}] == nil })
}

// Queries returns the queries that run, or ended less than ten minutes ago, by source
// and label.
func (b *Board) Queries() []Query {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(time.Now())
	list := make([]Query, 0, len(b.queries))
	for _, q := range b.queries {
		one := *q
		one.Ends = maps.Clone(q.Ends)
		list = append(list, one)
	}
	slices.SortFunc(list, func(x, y Query) int {
		return cmp.Or(cmp.Compare(x.Source, y.Source), cmp.Compare(x.Label, y.Label))
	})
	return list
}

// text makes a text from outside fit to be a label: UTF-8, and not too long.
func text(s string) string {
	if len(s) > longestLabel {
		s = s[:longestLabel]
	}
	return strings.ToValidUTF8(s, "�")
}

func clone[K comparable](m map[K]uint64) map[K]uint64 { return maps.Clone(m) }
