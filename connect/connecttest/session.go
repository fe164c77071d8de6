package connecttest

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"sparkbridge/connect/sparkpb"
)

type sessionKey struct{ user, id string }

// Session is a session in the server's memory, as the job that owns it would see and
// change it. It is of no more use after a restart of the server.
type Session struct {
	server     *Server
	user, id   string
	serverSide string
	closed     bool
	operations map[string]*operation
	abandoned  map[string]bool // ids of operations that nobody read for too long
	released   map[string]bool // ids of operations that a client ended
	slot       slot
	// twins are listeners beside the slot's, of ADDs that raced; racing lets the next
	// ADD become one.
	twins   []*operation
	racing  bool
	emitted []Emitted
	queries []*Query
	ended   *Query // since ResetTerminated; one that has failed, if there is one
	refuse  func(*sparkpb.Command) error
	// statements and views are what clients have run and made.
	statements []string
	views      map[string]*sparkpb.Relation
	// settings are what clients have set.
	settings map[string]string
}

// CreateSession makes a session as its own client does at first contact; a session
// that is there is returned as it is. The id is any UUID that was not closed before.
func (s *Server) CreateSession(user, id string) (*Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.findOrCreate(&sparkpb.UserContext{UserId: user}, id, "")
}

// Session finds a session that is open.
func (s *Server) Session(user, id string) (*Session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	session, err := s.find(&sparkpb.UserContext{UserId: user}, id, "")
	return session, err == nil
}

// ServerSideID is the server's own id of the session, new whenever the session is made.
func (session *Session) ServerSideID() string { return session.serverSide }

// Close ends the session as the job's own spark.stop() or its expiry does: its queries
// stop, their ends are told on the bus, the bus is complete, and the id is spent.
func (session *Session) Close() {
	session.server.mu.Lock()
	defer session.server.mu.Unlock()
	session.close()
}

// Drop ends the session as a busy server may: the reader of the bus is disconnected
// before anything is told.
func (session *Session) Drop() {
	session.server.mu.Lock()
	defer session.server.mu.Unlock()
	for _, op := range session.operations {
		session.discard(op)
	}
	session.close()
}

func (session *Session) close() {
	for _, q := range session.queries {
		if session.stop(q) {
			session.emit(sparkpb.StreamingQueryEventType_QUERY_TERMINATED_EVENT,
				fmt.Sprintf(`{"id":%q,"runId":%q,"exception":null,"errorClassOnException":null}`, q.ID, q.RunID))
		}
	}
	session.freeSlot()
	for _, op := range session.twins {
		op.finish()
	}
	session.twins, session.closed = nil, true
}

// find answers with an open session. observed is the server-side id that the client
// remembers, empty where it remembers none.
func (s *Server) find(user *sparkpb.UserContext, id, observed string) (*Session, error) {
	session, ok := s.sessions[sessionKey{user.GetUserId(), id}]
	switch {
	case !ok:
		return nil, s.handleError(classSessionNotFound, id)
	case session.closed:
		return nil, s.handleError(classSessionClosed, id)
	case observed != "" && observed != session.serverSide:
		return nil, s.handleError(classSessionChanged, id)
	}
	session.maintain()
	return session, nil
}

func (s *Server) findOrCreate(user *sparkpb.UserContext, id, observed string) (*Session, error) {
	if uuid.Validate(id) != nil {
		return nil, s.handleError(classFormat, id)
	}
	key := sessionKey{user.GetUserId(), id}
	if _, ok := s.sessions[key]; !ok {
		s.sessions[key] = s.newSession(key)
	}
	return s.find(user, id, observed)
}

func (s *Server) newSession(key sessionKey) *Session {
	session := &Session{
		server: s, user: key.user, id: key.id,
		operations: map[string]*operation{},
		abandoned:  map[string]bool{},
		released:   map[string]bool{},
		settings:   map[string]string{},
		views:      map[string]*sparkpb.Relation{},
	}
	if s.options.Version != Spark35 {
		session.serverSide = uuid.NewString()
	}
	return session
}

// maintain abandons what nobody has read for too long. The real server looks in rounds;
// since only a client could tell the difference, it is enough to look when one asks.
func (session *Session) maintain() {
	for id, op := range session.operations {
		if session.server.overdue(op) {
			session.abandoned[id] = true
			session.discard(op)
		}
	}
}

// discard forgets an operation. If it is the bus, its listener stays on the driver and
// holds the slot without anyone to read it.
func (session *Session) discard(op *operation) {
	delete(session.operations, op.id)
	op.gone = true
	op.wake()
	if session.slot.operation == op {
		session.slot.operation = nil
	}
	session.twins = slices.DeleteFunc(session.twins, func(twin *operation) bool { return twin == op })
}
