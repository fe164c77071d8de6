package connecttest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"sparkbridge/connect/sparkpb"
)

// start begins a query: what it reads and writes is not played, and it does what a test
// says by Change. Its checkpoint is on a disk, so to speak: it outlives the server, and its
// query goes on under the same id.
func (session *Session) start(op *operation, command *sparkpb.WriteStreamOperationStart) error {
	q := &Query{ID: uuid.NewString(), RunID: uuid.NewString(), Name: command.GetQueryName(), checkpoint: command.GetOptions()["checkpointLocation"]}
	if q.Name != "" && slices.ContainsFunc(session.queries, func(other *Query) bool { return other.Name == q.Name && !other.Stopped }) {
		return session.server.javaError("Cannot start query with name "+q.Name+" as a query with that name is already active in this SparkSession", "java.lang.IllegalArgumentException", nil)
	}
	if q.checkpoint != "" {
		session.server.resume(q)
	}
	session.queries = append(session.queries, q)
	started := &sparkpb.WriteStreamOperationStartResult{QueryId: &sparkpb.StreamingQueryInstanceId{Id: q.ID, RunId: q.RunID}, Name: q.Name}
	if session.slot.taken {
		started.QueryStartedEventJson = q.started(session.server.options.Version)
	}
	return op.answer(&sparkpb.ExecutePlanResponse{
		ResponseType: &sparkpb.ExecutePlanResponse_WriteStreamOperationStartResult{WriteStreamOperationStartResult: started},
	})
}

// resume gives a query the id that its checkpoint has, and stops the run that uses it at the
// moment, in whatever session.
func (s *Server) resume(q *Query) {
	if id, known := s.checkpoints[q.checkpoint]; known {
		q.ID = id
	}
	s.checkpoints[q.checkpoint] = q.ID
	for _, session := range s.sessions {
		for _, other := range session.queries {
			if other.checkpoint == q.checkpoint && !other.Stopped {
				session.change(func() { other.Stopped = true })
			}
		}
	}
}

// started is the event that only the starter of a query is told, and only while the session
// has a listener.
func (q *Query) started(version Version) *string {
	event := map[string]any{"id": q.ID, "runId": q.RunID, "name": nil, "timestamp": time.Now().UTC().Format("2006-01-02T15:04:05.000Z")}
	if q.Name != "" {
		event["name"] = q.Name
	}
	if version == Spark42 {
		event["jobTags"] = []string{}
	}
	told, err := json.Marshal(event)
	if err != nil {
		panic(err) // text only
	}
	text := string(told)
	return &text
}

// Change changes a run as the driver would, and wakes who waits for its end.
func (session *Session) Change(runID string, change func(*Query)) {
	session.server.mu.Lock()
	defer session.server.mu.Unlock()
	for _, q := range session.queries {
		if q.RunID == runID {
			session.change(func() { change(q) })
			return
		}
	}
	panic(fmt.Sprintf("connecttest: no query has run id %q", runID))
}

// Queries are the runs of the session, active and ended ones, oldest first.
func (session *Session) Queries() []Query {
	session.server.mu.Lock()
	defer session.server.mu.Unlock()
	queries := make([]Query, 0, len(session.queries))
	for _, q := range session.queries {
		queries = append(queries, *q)
	}
	return queries
}

// Refuse is asked about each command before it is played, whatever the session's state; an
// error of it is answered instead, see Server.Error. nil refuses nothing.
func (session *Session) Refuse(refuse func(*sparkpb.Command) error) {
	session.server.mu.Lock()
	defer session.server.mu.Unlock()
	session.refuse = refuse
}
