// Package dedupe remembers what has been admitted, exactly and in a few bytes a
// run. Spark delivers at least once; within a run its batch ids grow by one and
// its idle times grow, so a watermark per run tells a repeat from news without a
// window or an expiry, and a batch id that jumps is a gap, found for free.
package dedupe

import (
	"encoding/json"
	"fmt"
	"time"
)

// keepEnded is how long the marks of a run outlive its end. Spark itself forgets
// a stopped query after an hour, so nothing of the run can come after that.
const keepEnded = 24 * time.Hour

// maxOnce bounds the ids that have no order. They can come again only while the
// server still holds what was not released, which is far less than this.
const maxOnce = 4096

// none is the batch id and the idle time of a run that has had none.
const none int64 = -1

// run is what was admitted of one run.
type run struct {
	Batch   int64 `json:"batch"` // highest batch id
	Idle    int64 `json:"idle"`  // newest idle time, epoch milliseconds
	Started bool  `json:"started,omitempty"`
	// Ended is when the end was admitted, epoch milliseconds, 0 while it runs.
	Ended int64 `json:"ended,omitempty"`
	// Terminated says that Spark's own terminated event was admitted.
	Terminated bool `json:"terminated,omitempty"`
}

// Range is a run of batch ids that did not come, both ends included. The zero
// Range of a run that lacks nothing has To < From.
type Range struct{ From, To int64 }

// Empty says that nothing is missing.
func (r Range) Empty() bool { return r.To < r.From }

// Marks are the watermarks of the runs of one source. They are not safe for
// concurrent use. Each method that takes an event returns whether it is news,
// and moves the marks if it is.
type Marks struct {
	runs map[string]*run
	once map[string]struct{}
	// order holds the keys of once, oldest first.
	order []string
}

// New returns marks of nothing.
func New() *Marks {
	return &Marks{runs: map[string]*run{}, once: map[string]struct{}{}}
}

func (m *Marks) of(runID string) *run {
	r := m.runs[runID]
	if r == nil {
		r = &run{Batch: none, Idle: none}
		m.runs[runID] = r
	}
	return r
}

// Known says whether anything of the run has been admitted.
func (m *Marks) Known(runID string) bool { return m.runs[runID] != nil }

// Batch returns the highest batch id of the run, -1 if it has had none.
func (m *Marks) Batch(runID string) int64 {
	if r := m.runs[runID]; r != nil {
		return r.Batch
	}
	return none
}

// Started takes the start of a run, told or inferred: one of them is enough.
func (m *Marks) Started(runID string) bool {
	r := m.of(runID)
	fresh := !r.Started
	r.Started = true
	return fresh
}

// HasStarted says whether the start of the run has been admitted.
func (m *Marks) HasStarted(runID string) bool {
	r := m.runs[runID]
	return r != nil && r.Started
}

// Progress takes a batch of a run and returns the batches between it and the one
// before it that did not come. The first batch that is seen of a run leaves no
// gap, whatever its id: a restarted query goes on where its checkpoint stopped.
func (m *Marks) Progress(runID string, batchID int64) (fresh bool, missing Range) {
	r := m.of(runID)
	if batchID <= r.Batch {
		return false, Range{0, none}
	}
	missing = Range{r.Batch + 1, batchID - 1}
	if r.Batch == none {
		missing = Range{0, none}
	}
	r.Batch = batchID
	return true, missing
}

// Idle takes an idle event by its own time.
func (m *Marks) Idle(runID string, at time.Time) bool {
	r, ms := m.of(runID), at.UnixMilli()
	if ms <= r.Idle {
		return false
	}
	r.Idle = ms
	return true
}

// Terminated takes Spark's terminated event of a run; now starts the time after
// which the marks of the run may go.
func (m *Marks) Terminated(runID string, now time.Time) bool {
	r := m.of(runID)
	if r.Terminated {
		return false
	}
	r.Terminated, r.Ended = true, now.UnixMilli()
	return true
}

// Once takes an event that only its id tells apart.
func (m *Marks) Once(id string) bool {
	if _, seen := m.once[id]; seen {
		return false
	}
	m.once[id] = struct{}{}
	m.order = append(m.order, id)
	for len(m.order) > maxOnce {
		delete(m.once, m.order[0])
		m.order = m.order[1:]
	}
	return true
}

// Sweep forgets the runs that ended more than a day before now, and returns their
// ids.
func (m *Marks) Sweep(now time.Time) []string {
	var gone []string
	for id, r := range m.runs {
		if r.Ended != 0 && now.Sub(time.UnixMilli(r.Ended)) > keepEnded {
			gone = append(gone, id)
			delete(m.runs, id)
		}
	}
	return gone
}

// snapshot is the stored form of Marks.
type snapshot struct {
	Runs map[string]*run `json:"runs"`
	Once []string        `json:"once,omitempty"`
}

// MarshalJSON gives the marks a form that UnmarshalJSON reads back.
func (m *Marks) MarshalJSON() ([]byte, error) {
	return json.Marshal(snapshot{m.runs, m.order})
}

// UnmarshalJSON replaces the marks by stored ones.
func (m *Marks) UnmarshalJSON(b []byte) error {
	var s snapshot
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("decode marks: %w", err)
	}
	*m = *New()
	for id, r := range s.Runs {
		if r == nil {
			return fmt.Errorf("decode marks: run %s is null", id)
		}
		m.runs[id] = r
	}
	for _, id := range s.Once {
		m.Once(id)
	}
	return nil
}
