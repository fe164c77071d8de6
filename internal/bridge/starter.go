package bridge

import (
	"slices"
	"sync"

	"sparkbridge/configs"
	"sparkbridge/internal/watch"
	"sparkbridge/listener"
	"sparkbridge/sinks/redact"
)

// starter knows what became of the queries that are to be started in a session: each is
// started once in it.
type starter struct {
	mu       sync.Mutex
	starts   []watch.Start // in the order of the configuration
	prepared bool          // conf and setup are done
}

func newStarter(queries []configs.Query) *starter {
	st := &starter{starts: make([]watch.Start, len(queries))}
	for i, q := range queries {
		st.starts[i].Name = q.Name
	}
	st.reset()
	return st
}

// reset begins anew, for a session in which nothing was started.
func (st *starter) reset() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.prepared = false
	for i := range st.starts {
		st.starts[i].State, st.starts[i].Error = watch.StartWaiting, ""
	}
}

// prepare notes that the session is prepared for queries.
func (st *starter) prepare() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.prepared = true
}

func (st *starter) isPrepared() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.prepared
}

// waiting are the indices of the queries that are still to be started.
func (st *starter) waiting() []int {
	st.mu.Lock()
	defer st.mu.Unlock()
	var waiting []int
	for i := range st.starts {
		if st.starts[i].State == watch.StartWaiting {
			waiting = append(waiting, i)
		}
	}
	return waiting
}

// settle notes what became of a query; err is why it was not started.
func (st *starter) settle(i int, state watch.StartState, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.starts[i].State, st.starts[i].Error = state, redact.Text(errorText(err))
}

// shown is a copy for whoever asks.
func (st *starter) shown() []watch.Start {
	st.mu.Lock()
	defer st.mu.Unlock()
	return slices.Clone(st.starts)
}

// named says whether one of the queries has a name.
func named(queries []listener.Query, name string) bool {
	return slices.ContainsFunc(queries, func(q listener.Query) bool { return q.Name == name })
}
