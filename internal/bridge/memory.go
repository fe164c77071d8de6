package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"sparkbridge/connect"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
)

// memory is what a source keeps in the journal's state: where to resume the bus,
// and the marks that make admission exact.
type memory struct {
	journal *journal.Journal
	source  string
	// asked is the operation behind whose beginning nothing is left to ask for.
	asked string
	// removed is the operation whose listener we have removed. That must not be
	// forgotten where it cannot be stored: the slot may be another client's since.
	removed string
}

var _ connect.ResumeStore = (*memory)(nil)

// resume is the stored form of a resume point.
type resume struct {
	connect.ResumePoint
	// Asked says that Spark has been asked for what happened before the operation.
	Asked bool `json:"asked,omitempty"`
}

// Load returns the stored resume point.
func (m *memory) Load() (connect.ResumePoint, bool, error) {
	blob, ok, err := m.journal.State().Resume(m.source)
	if err != nil || !ok {
		return connect.ResumePoint{}, false, err
	}
	var p resume
	if err := json.Unmarshal(blob, &p); err != nil {
		return connect.ResumePoint{}, false, fmt.Errorf("decode resume point of source %s: %w", m.source, err)
	}
	if p.Asked {
		m.asked = p.OperationID
	}
	p.Removed = p.Removed || m.removed != "" && m.removed == p.OperationID
	return p.ResumePoint, p.ResumePoint != connect.ResumePoint{}, nil
}

// holds says whether an operation of ours may still hold the bus of the session.
func (m *memory) holds(session *connect.Session) (bool, error) {
	p, ok, err := m.Load()
	return ok && !p.Silent && p.UserID == session.UserID() && p.SessionID == session.ID(), err
}

// Save stores a resume point durably.
func (m *memory) Save(p connect.ResumePoint) error {
	if p.Removed {
		m.removed = p.OperationID
	}
	blob, err := json.Marshal(resume{p, p.OperationID != "" && p.OperationID == m.asked})
	if err != nil {
		return fmt.Errorf("encode resume point of source %s: %w", m.source, err)
	}
	return m.journal.State().SaveResume(m.source, blob)
}

// recall restores an admission: the stored marks, and then the records that came
// after them.
func (m *memory) recall(ctx context.Context, a *listener.Admission) error {
	covered, blob, ok, err := m.journal.State().Marks(m.source)
	if err != nil {
		return fmt.Errorf("read marks of source %s: %w", m.source, err)
	}
	if ok {
		if err := a.Restore(blob); err != nil {
			return fmt.Errorf("restore marks of source %s: %w", m.source, err)
		}
	}
	first, next := m.journal.Bounds()
	return m.replay(ctx, a, max(covered, first), next)
}

// replay moves the marks over the source's records from one sequence to another.
func (m *memory) replay(ctx context.Context, a *listener.Admission, from, to uint64) (err error) {
	if from >= to {
		return nil
	}
	reader, err := m.journal.NewReader(from)
	if err != nil {
		return fmt.Errorf("replay journal: %w", err)
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	for t := (tape{reader}); from < to; {
		events, err := t.Next(ctx, 1024, 8<<20)
		if err != nil {
			return fmt.Errorf("replay journal: %w", err)
		}
		for _, e := range events {
			if e.Source == m.source {
				a.Replay(e)
			}
		}
		from = events[len(events)-1].Sequence + 1
	}
	return nil
}

// note stores the marks, if nothing is under way, so that retention may delete
// the records that they cover.
func (m *memory) note(a *listener.Admission) error {
	_, err := a.Snapshot(func(blob []byte) error {
		_, next := m.journal.Bounds()
		return m.journal.State().SaveMarks(m.source, next, blob)
	})
	if err != nil {
		return fmt.Errorf("save marks of source %s: %w", m.source, err)
	}
	return nil
}

// covered is the sequence before which the stored marks make the records of this
// source dispensable.
func (m *memory) covered() (uint64, error) {
	covered, _, _, err := m.journal.State().Marks(m.source)
	if err != nil {
		return 0, fmt.Errorf("read marks of source %s: %w", m.source, err)
	}
	return covered, nil
}
