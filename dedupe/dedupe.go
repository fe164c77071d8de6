// Package dedupe remembers what has been admitted, exactly and in a few bytes a
// run. Spark delivers at least once; within a run its batch ids grow by one and
// its idle times grow, so a watermark per run tells a repeat from news without a
// window or an expiry, and a batch id that jumps is a gap, found for free.
package dedupe

import (
	"encoding/json"
	"fmt"
	"slices"
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
	// Terminated says that Spark's own terminated event was admitted, Inferred that
	// an inferred one was.
	Terminated bool `json:"terminated,omitempty"`
	Inferred   bool `json:"inferred,omitempty"`
	// Open are the batches below the highest that are missing, and of which it is
	// not known yet whether they can still be had.
	Open []Range `json:"open,omitempty"`
	// Unbegun says that the open batches from 0 on may be of an earlier run.
	Unbegun bool `json:"unbegun,omitempty"`
}

// Range is a run of batch ids that did not come, both ends included. An empty one
// has To < From.
type Range struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// empty is a Range of nothing.
var empty = Range{0, none}

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

// HasEnded says whether an end of the run has been admitted, and it did not go on.
func (m *Marks) HasEnded(runID string) bool {
	r := m.runs[runID]
	return r != nil && r.Ended != 0
}

// Progress takes a batch of a run and returns the batches between it and the one
// before it that did not come. The first batch that is seen of a run leaves no
// gap, whatever its id: a restarted query goes on where its checkpoint stopped.
// The missing batches stay open until they come or Gap gives them up.
func (m *Marks) Progress(runID string, batchID int64) (fresh bool, missing Range) {
	r := m.of(runID)
	switch {
	case batchID <= r.Batch:
		return r.fill(Range{batchID, batchID}), empty
	case r.Batch == none:
		missing = empty
	default:
		missing = Range{r.Batch + 1, batchID - 1}
	}
	r.Batch = batchID
	r.revive()
	if !missing.Empty() {
		r.Open = append(r.Open, missing)
	}
	return true, missing
}

// Unbegun opens the batches before the first that was seen of a run: they may be of
// the run, or of an earlier one of its query. Once Begin is called, what of them has
// not come counts as an earlier run's.
func (m *Marks) Unbegun(runID string) {
	if r := m.of(runID); len(r.Open) == 0 && r.Batch > 0 {
		r.Open, r.Unbegun = []Range{{0, r.Batch - 1}}, true
	}
}

// Begin closes the batches that Unbegun opened, up to the first that has come.
func (m *Marks) Begin(runID string) {
	r := m.runs[runID]
	if r == nil || !r.Unbegun {
		return
	}
	if r.Unbegun = false; len(r.Open) > 0 && r.Open[0].From == 0 {
		r.Open = r.Open[1:]
	}
}

// Gap gives up batches that are missing: they will not be had any more. It reports
// false where none of them was open or still to come.
func (m *Marks) Gap(runID string, missing Range) bool {
	r := m.of(runID)
	known := r.fill(missing)
	if missing.To > r.Batch {
		r.Batch, known = missing.To, true
	}
	return known
}

// Open returns the missing batches of a run that are neither had nor given up.
func (m *Marks) Open(runID string) []Range {
	if r := m.runs[runID]; r != nil {
		return slices.Clone(r.Open)
	}
	return nil
}

// Incomplete returns the runs that have open batches, in the order of their ids.
func (m *Marks) Incomplete() []string {
	var ids []string
	for id, r := range m.runs {
		if len(r.Open) > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// fill takes batches out of the open ones, and says whether there was any of them.
func (r *run) fill(batches Range) (some bool) {
	var left []Range
	for _, o := range r.Open {
		if batches.To < o.From || o.To < batches.From {
			left = append(left, o)
			continue
		}
		some = true
		for _, rest := range []Range{{o.From, batches.From - 1}, {batches.To + 1, o.To}} {
			if !rest.Empty() {
				left = append(left, rest)
			}
		}
	}
	r.Open = left
	return some
}

// Idle takes an idle event by its own time.
func (m *Marks) Idle(runID string, at time.Time) bool {
	r, ms := m.of(runID), at.UnixMilli()
	if ms <= r.Idle {
		return false
	}
	r.Idle = ms
	r.revive()
	return true
}

// revive takes back an end that was inferred, when the run goes on all the same.
func (r *run) revive() {
	if !r.Terminated {
		r.Ended = 0
	}
}

// LastIdle returns the newest idle time of the run, false if it has had none.
func (m *Marks) LastIdle(runID string) (time.Time, bool) {
	if r := m.runs[runID]; r != nil && r.Idle != none {
		return time.UnixMilli(r.Idle).UTC(), true
	}
	return time.Time{}, false
}

// Terminated takes Spark's terminated event of a run; now starts the time after
// which the marks of the run may go. It is news also where the end was inferred.
func (m *Marks) Terminated(runID string, now time.Time) bool {
	r := m.of(runID)
	if r.Terminated {
		return false
	}
	r.Terminated, r.Ended = true, now.UnixMilli()
	return true
}

// InferEnd takes an end that was inferred; it is news once, where no end is known.
func (m *Marks) InferEnd(runID string, now time.Time) bool {
	r := m.of(runID)
	fresh := !r.Inferred && r.Ended == 0
	r.Inferred, r.Ended = true, now.UnixMilli()
	return fresh
}

// Running returns the runs that have started and have no known end, in the order
// of their ids.
func (m *Marks) Running() []string {
	var ids []string
	for id, r := range m.runs {
		if r.Started && r.Ended == 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
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
