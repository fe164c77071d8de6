package connect

import "slices"

// StreamingQuery is one run of a query. Its methods may be called by several goroutines
// at once.
type StreamingQuery struct {
	s               *Session
	id, runID, name string
	started         []byte
}

// ID stays the same when a query is started again from its checkpoint.
func (q *StreamingQuery) ID() string { return q.id }

// RunID is new with each start.
func (q *StreamingQuery) RunID() string { return q.runID }

// Name is the query's name, empty where it has none.
func (q *StreamingQuery) Name() string { return q.name }

// Started is Spark's own event of the start, as it came; nil where the session has no listener, or
// the query was started by somebody else.
func (q *StreamingQuery) Started() []byte { return slices.Clone(q.started) }
