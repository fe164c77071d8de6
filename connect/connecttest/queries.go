package connecttest

import (
	"fmt"
	"slices"

	"github.com/google/uuid"

	"sparkbridge/connect/sparkpb"
)

// Query is a run of a streaming query that the server pretends to have.
type Query struct {
	ID, RunID, Name string
	// Stopped queries are no longer active; they still answer questions.
	Stopped bool
	// Status is the status message, "Processing new data" where it is empty.
	Status string
	// Recent is what recent_progress answers, oldest first; last_progress is its end.
	Recent []string
	// Exception is the message of the failure that ended the run.
	Exception string
	// DataAvailable says that there is data to process: process_all_available waits for its end.
	DataAvailable bool
	// Idle runs wait for their next trigger.
	Idle bool
	// Plan is what explain answers.
	Plan string

	checkpoint string
	noted      bool // that it has ended
}

// stop ends a run, and says whether it had not ended before.
func (session *Session) stop(q *Query) bool {
	was := !q.Stopped
	session.change(func() { q.Stopped = true })
	return was
}

// SetQueries replaces all queries of the session, active and ended ones.
func (session *Session) SetQueries(queries ...Query) {
	session.server.mu.Lock()
	defer session.server.mu.Unlock()
	session.change(func() {
		session.queries = nil
		for _, q := range queries {
			session.queries = append(session.queries, &q)
		}
	})
}

func (session *Session) performManager(op *operation, command *sparkpb.StreamingQueryManagerCommand) error {
	result := &sparkpb.StreamingQueryManagerCommandResult{}
	switch c := command.GetCommand().(type) {
	case *sparkpb.StreamingQueryManagerCommand_Active:
		result.ResultType = &sparkpb.StreamingQueryManagerCommandResult_Active{Active: session.active()}
	case *sparkpb.StreamingQueryManagerCommand_GetQuery:
		if uuid.Validate(c.GetQuery) != nil {
			return session.server.javaError("Invalid UUID string: "+c.GetQuery, "java.lang.IllegalArgumentException", nil)
		}
		if i := slices.IndexFunc(session.queries, func(q *Query) bool { return q.ID == c.GetQuery && !q.Stopped }); i >= 0 {
			result.ResultType = &sparkpb.StreamingQueryManagerCommandResult_Query{Query: session.queries[i].instance()}
		}
	case *sparkpb.StreamingQueryManagerCommand_AwaitAnyTermination:
		return session.awaitAnyTermination(op, c.AwaitAnyTermination.TimeoutMs)
	case *sparkpb.StreamingQueryManagerCommand_ResetTerminated:
		session.ended = nil
		result.ResultType = &sparkpb.StreamingQueryManagerCommandResult_ResetTerminated{ResetTerminated: true}
	default:
		return notPlayed(command)
	}
	return op.answerManager(result)
}

func (op *operation) answerManager(result *sparkpb.StreamingQueryManagerCommandResult) error {
	return op.answer(&sparkpb.ExecutePlanResponse{
		ResponseType: &sparkpb.ExecutePlanResponse_StreamingQueryManagerCommandResult{StreamingQueryManagerCommandResult: result},
	})
}

func (session *Session) active() *sparkpb.StreamingQueryManagerCommandResult_ActiveResult {
	result := &sparkpb.StreamingQueryManagerCommandResult_ActiveResult{}
	for _, q := range session.queries {
		if !q.Stopped {
			result.ActiveQueries = append(result.ActiveQueries, q.instance())
		}
	}
	return result
}

func (q *Query) instance() *sparkpb.StreamingQueryManagerCommandResult_StreamingQueryInstance {
	instance := &sparkpb.StreamingQueryManagerCommandResult_StreamingQueryInstance{
		Id: &sparkpb.StreamingQueryInstanceId{Id: q.ID, RunId: q.RunID},
	}
	if q.Name != "" {
		instance.Name = &q.Name
	}
	return instance
}

func (session *Session) performQuery(op *operation, command *sparkpb.StreamingQueryCommand) error {
	q, err := session.query(command.GetQueryId())
	if err != nil {
		return err
	}
	result := &sparkpb.StreamingQueryCommandResult{QueryId: command.GetQueryId()}
	switch c := command.GetCommand().(type) {
	case *sparkpb.StreamingQueryCommand_Status:
		result.ResultType = &sparkpb.StreamingQueryCommandResult_Status{Status: q.status()}
	case *sparkpb.StreamingQueryCommand_LastProgress:
		result.ResultType = recentProgress(q.Recent[max(0, len(q.Recent)-1):])
	case *sparkpb.StreamingQueryCommand_RecentProgress:
		result.ResultType = recentProgress(q.Recent)
	case *sparkpb.StreamingQueryCommand_Exception:
		result.ResultType = &sparkpb.StreamingQueryCommandResult_Exception{Exception: q.exception()}
	case *sparkpb.StreamingQueryCommand_Stop:
		session.stop(q)
	case *sparkpb.StreamingQueryCommand_Explain:
		result.ResultType = &sparkpb.StreamingQueryCommandResult_Explain{Explain: &sparkpb.StreamingQueryCommandResult_ExplainResult{Result: q.Plan}}
	case *sparkpb.StreamingQueryCommand_AwaitTermination:
		return session.awaitTermination(op, q, command.GetQueryId(), c.AwaitTermination.TimeoutMs)
	case *sparkpb.StreamingQueryCommand_ProcessAllAvailable:
		return session.processAllAvailable(op, q, command.GetQueryId())
	default:
		return notPlayed(command)
	}
	return op.answerQuery(result)
}

func (op *operation) answerQuery(result *sparkpb.StreamingQueryCommandResult) error {
	return op.answer(&sparkpb.ExecutePlanResponse{
		ResponseType: &sparkpb.ExecutePlanResponse_StreamingQueryCommandResult{StreamingQueryCommandResult: result},
	})
}

// query finds a run. One that it does not know is told apart by whether its query has
// another run.
func (session *Session) query(id *sparkpb.StreamingQueryInstanceId) (*Query, error) {
	class, text := classQueryUnknown, fmt.Sprintf("Streaming query %s is not found", id.GetId())
	for _, q := range session.queries {
		if q.ID != id.GetId() {
			continue
		}
		if q.RunID == id.GetRunId() {
			return q, nil
		}
		class = classRunUnknown
		text = fmt.Sprintf("Run id mismatch for query id %s. Run id in the request %s does not match one on the server %s. The query might have restarted.", q.ID, id.GetRunId(), q.RunID)
	}
	if session.server.options.Version == Spark42 {
		return nil, session.server.classError(class, text)
	}
	return nil, session.server.javaError(text, "java.lang.IllegalArgumentException", nil)
}

func (q *Query) status() *sparkpb.StreamingQueryCommandResult_StatusResult {
	message := q.Status
	switch {
	case message != "":
	case q.Exception != "":
		message = "Terminated with exception: " + q.Exception
	case q.Stopped:
		message = "Stopped"
	case q.Idle:
		message = "Waiting for data to arrive"
	default:
		message = "Processing new data"
	}
	return &sparkpb.StreamingQueryCommandResult_StatusResult{
		StatusMessage: message, IsActive: !q.Stopped, IsTriggerActive: !q.Stopped && !q.Idle, IsDataAvailable: q.DataAvailable,
	}
}

func recentProgress(json []string) *sparkpb.StreamingQueryCommandResult_RecentProgress {
	return &sparkpb.StreamingQueryCommandResult_RecentProgress{
		RecentProgress: &sparkpb.StreamingQueryCommandResult_RecentProgressResult{RecentProgressJson: json},
	}
}

func (q *Query) exception() *sparkpb.StreamingQueryCommandResult_ExceptionResult {
	if q.Exception == "" {
		return &sparkpb.StreamingQueryCommandResult_ExceptionResult{}
	}
	class, trace := "STREAM_FAILED", q.Exception+"\n\tat org.apache.spark.sql.execution.streaming.StreamExecution"
	return &sparkpb.StreamingQueryCommandResult_ExceptionResult{ExceptionMessage: &q.Exception, ErrorClass: &class, StackTrace: &trace}
}
