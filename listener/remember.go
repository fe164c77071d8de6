package listener

import (
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"

	"sparkbridge/dedupe"
)

// Replay moves the marks over an event of the journal, so that after a restart
// the admission decides as if the process had not died. Events are replayed in
// the order of the journal, from the point that the restored snapshot covers;
// events before that point do no harm. Neither it nor Restore is called beside a
// Feed.
func (a *Admission) Replay(e Event) {
	if e.RunID == "" {
		if e.Kind == KindUnknown {
			a.marks.Once(e.ID)
		}
		return
	}
	if e.Kind == KindGap {
		batches := gjson.GetManyBytes(e.Payload, "fromBatchId", "toBatchId")
		a.marks.Gap(e.RunID, dedupe.Range{From: batches[0].Int(), To: batches[1].Int()})
		return
	}
	first := e.Kind == KindProgress && a.marks.Batch(e.RunID) < 0
	a.mark(e)
	if first {
		a.marks.Unbegun(e.RunID) // whether Spark was asked about the beginning is not known
	}
	a.marks.Started(e.RunID)
	a.join(&e)
	l := a.life(e.RunID)
	if e.Origin == OriginBus && (e.Kind == KindIdle || e.Kind == KindTerminated) {
		l.Holey = true // whether Spark was asked for a lost last batch is not known
	}
	l.UserID, l.SessionID = e.UserID, e.SessionID
	if e.Name != "" {
		l.Name = e.Name
	}
}

// sweep forgets the runs that ended more than a day ago.
func (a *Admission) sweep() {
	for _, runID := range a.marks.Sweep(a.now()) {
		delete(a.lives, runID)
	}
}

// snapshot is the stored form of an admission.
type snapshot struct {
	Marks *dedupe.Marks    `json:"marks"`
	Lives map[string]*life `json:"lives"`
}

// Snapshot hands the marks and names as JSON to keep, at a moment when all that
// they cover has been delivered. It reports false, and calls nothing, while a
// delivery is under way or after one was given up.
func (a *Admission) Snapshot(keep func(snapshot []byte) error) (bool, error) {
	if !a.mu.TryLock() {
		return false, nil
	}
	defer a.mu.Unlock()
	if a.torn {
		return false, nil
	}
	a.sweep()
	b, err := json.Marshal(snapshot{a.marks, a.lives})
	if err != nil {
		return false, fmt.Errorf("encode snapshot: %w", err)
	}
	return true, keep(b)
}

// Restore replaces the marks and names by those of a snapshot.
func (a *Admission) Restore(b []byte) error {
	s := snapshot{Marks: dedupe.New()}
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("decode snapshot: %w", err)
	}
	a.marks, a.lives = s.Marks, map[string]*life{}
	for runID, l := range s.Lives {
		if l == nil {
			return fmt.Errorf("decode snapshot: run %s is null", runID)
		}
		a.lives[runID] = l
	}
	return nil
}
