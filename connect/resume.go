package connect

import (
	"fmt"
	"sync"
)

// ResumePoint is what another process, or this one after a crash, needs to read on
// in the operation that holds a listener bus. It is stored before it is needed:
// the operation before it is sent, a response id before the server may forget what
// is before it.
type ResumePoint struct {
	UserID          string `json:"userId"`
	SessionID       string `json:"sessionId"`
	ServerSessionID string `json:"serverSessionId,omitempty"` // of the driver that runs the operation, once known
	OperationID     string `json:"operationId"`               // empty: there is no operation
	LastResponseID  string `json:"lastResponseId,omitempty"`  // the last response that is kept on this side
	// Added says that Spark has acknowledged the listener, so that the bus is ours
	// to remove. Silent says that it never did, because the bus is somebody else's.
	// With neither it is not known. Removed says that we have removed the listener
	// since: what holds the bus now is not ours, only the rest in the operation is.
	// Removing says that the process died while it removed the listener: nobody can
	// tell whose listener another REMOVE would meet.
	Added    bool `json:"added,omitempty"`
	Silent   bool `json:"silent,omitempty"`
	Removing bool `json:"removing,omitempty"`
	Removed  bool `json:"removed,omitempty"`
}

// ResumeStore keeps the resume point of one bus. It is called by one goroutine at
// a time.
type ResumeStore interface {
	// Load returns what was saved last; false where nothing was.
	Load() (ResumePoint, bool, error)
	// Save keeps p durably when it returns nil. The zero point stands for none.
	Save(p ResumePoint) error
}

// MemoryStore is a ResumeStore that outlives a bus but not the process. The zero
// value is empty and ready to use.
type MemoryStore struct {
	mu    sync.Mutex
	point ResumePoint
}

// Load returns what was saved last.
func (m *MemoryStore) Load() (ResumePoint, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.point, m.point != ResumePoint{}, nil
}

// Save keeps p in memory.
func (m *MemoryStore) Save(p ResumePoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.point = p
	return nil
}

// stored is the resume point of this session, zero where there is none. A point of
// another session is of no use: its bus cannot be reached from here.
func (s *Session) stored(store ResumeStore) (ResumePoint, error) {
	p, ok, err := store.Load()
	if err != nil {
		return ResumePoint{}, fmt.Errorf("load resume point: %w", err)
	}
	if !ok || p.OperationID == "" || p.UserID != s.UserID() || p.SessionID != s.ID() {
		return ResumePoint{}, nil
	}
	return p, nil
}

func save(store ResumeStore, p ResumePoint) error {
	if err := store.Save(p); err != nil {
		return fmt.Errorf("save resume point: %w", err)
	}
	return nil
}
