package connect

import (
	"context"
	"fmt"
	"slices"

	"sparkbridge/connect/sparkpb"
	"sparkbridge/listener"
)

// StreamingQuery is one run of a query, whoever has started it. Its methods may be called
// by several goroutines at once. Spark answers for an hour after the end of a run, and then
// listener.ErrNoQuery.
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

// Started is Spark's own event of the start, as it came; nil where the session had no
// listener then, or somebody else has started the query.
func (q *StreamingQuery) Started() []byte { return slices.Clone(q.started) }

// Status is what a run does at the moment.
type Status struct {
	Message         string `json:"message"` // such as "Waiting for next trigger", or "Stopped"
	IsDataAvailable bool   `json:"isDataAvailable"`
	IsTriggerActive bool   `json:"isTriggerActive"`
	IsActive        bool   `json:"isActive"` // it has not ended
}

// Status asks what the run does at the moment.
func (q *StreamingQuery) Status(ctx context.Context) (Status, error) {
	result, err := q.ask(ctx, "ask for status", &sparkpb.StreamingQueryCommand{
		Command: &sparkpb.StreamingQueryCommand_Status{Status: true},
	})
	s := result.GetStatus()
	return Status{
		Message:         s.GetStatusMessage(),
		IsDataAvailable: s.GetIsDataAvailable(),
		IsTriggerActive: s.GetIsTriggerActive(),
		IsActive:        s.GetIsActive(),
	}, err
}

// IsActive asks whether the run has not ended.
func (q *StreamingQuery) IsActive(ctx context.Context) (bool, error) {
	s, err := q.Status(ctx)
	return s.IsActive, err
}

// Explain asks how Spark computes a batch; extended tells the steps to that plan too.
// Before the first batch there is no plan, which Spark says in words.
func (q *StreamingQuery) Explain(ctx context.Context, extended bool) (string, error) {
	result, err := q.ask(ctx, "explain query", &sparkpb.StreamingQueryCommand{
		Command: &sparkpb.StreamingQueryCommand_Explain{Explain: &sparkpb.StreamingQueryCommand_ExplainCommand{Extended: extended}},
	})
	return result.GetExplain().GetResult(), err
}

// LastProgress asks for what the newest batch of the run has done: nil before the first one
// is done. An idle trigger is told here too: see listener.Progress.Idle.
func (q *StreamingQuery) LastProgress(ctx context.Context) (*listener.Progress, error) {
	all, err := q.progress(ctx, "ask for last progress", &sparkpb.StreamingQueryCommand{
		Command: &sparkpb.StreamingQueryCommand_LastProgress{LastProgress: true},
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return all[len(all)-1], nil
}

// RecentProgress asks for what the batches that Spark still keeps have done, oldest first; by
// default the last 99. Idle triggers are among them: see listener.Progress.Idle.
func (q *StreamingQuery) RecentProgress(ctx context.Context) ([]*listener.Progress, error) {
	return q.progress(ctx, "ask for recent progress", &sparkpb.StreamingQueryCommand{
		Command: &sparkpb.StreamingQueryCommand_RecentProgress{RecentProgress: true},
	})
}

func (q *StreamingQuery) progress(ctx context.Context, op string, command *sparkpb.StreamingQueryCommand) ([]*listener.Progress, error) {
	result, err := q.ask(ctx, op, command)
	var all []*listener.Progress
	for _, document := range result.GetRecentProgress().GetRecentProgressJson() {
		p, err := listener.DecodeProgress([]byte(document))
		if err != nil {
			return nil, fmt.Errorf("%s of query %s: %w", op, q.id, err)
		}
		all = append(all, p)
	}
	return all, err
}

// QueryError is what a run has failed with.
type QueryError struct {
	QueryID, RunID string
	Name           string // empty where the query has none
	Message        string // whole
	// ErrorClass is STREAM_FAILED for all that fails inside a query; the class of the cause
	// stands in the message.
	ErrorClass string
	StackTrace string // Java's, with the causes
}

func (e *QueryError) Error() string {
	name := e.Name
	if name == "" {
		name = e.QueryID
	}
	return fmt.Sprintf("query %s failed: %s", name, e.Message)
}

// Exception asks what the run has failed with: nil while it runs, and after a clean end.
func (q *StreamingQuery) Exception(ctx context.Context) (*QueryError, error) {
	result, err := q.ask(ctx, "ask for exception", &sparkpb.StreamingQueryCommand{
		Command: &sparkpb.StreamingQueryCommand_Exception{Exception: true},
	})
	e := result.GetException()
	if err != nil || e == nil || e.ExceptionMessage == nil {
		return nil, err
	}
	return &QueryError{
		QueryID: q.id, RunID: q.runID, Name: q.name,
		Message: e.GetExceptionMessage(), ErrorClass: e.GetErrorClass(), StackTrace: e.GetStackTrace(),
	}, nil
}

// Stop stops the run and returns when it has ended, which may take as long as its batch.
// Stopping what has ended is no error.
func (q *StreamingQuery) Stop(ctx context.Context) error {
	_, err := q.perform(ctx, "stop query", &sparkpb.StreamingQueryCommand{
		Command: &sparkpb.StreamingQueryCommand_Stop{Stop: true},
	})
	return err
}

// ask asks the run something that is answered at once, and may be asked again.
func (q *StreamingQuery) ask(ctx context.Context, op string, command *sparkpb.StreamingQueryCommand) (*sparkpb.StreamingQueryCommandResult, error) {
	var result *sparkpb.StreamingQueryCommandResult
	err := q.s.demand(ctx, op, func(ctx context.Context, spark sparkpb.SparkConnectServiceClient) error {
		result = nil
		return q.s.execute(ctx, spark, q.command(command), func(frame *sparkpb.ExecutePlanResponse) {
			if r := frame.GetStreamingQueryCommandResult(); r != nil {
				result = r
			}
		})
	})
	if err == nil && result == nil {
		err = classify(op, errNoResult)
	}
	return result, err
}

// perform runs a command of the run that may take long. Some have no result.
func (q *StreamingQuery) perform(ctx context.Context, op string, command *sparkpb.StreamingQueryCommand) (*sparkpb.StreamingQueryCommandResult, error) {
	var result *sparkpb.StreamingQueryCommandResult
	err := q.s.perform(ctx, op, planOf(q.command(command)), func(frame *sparkpb.ExecutePlanResponse) {
		if r := frame.GetStreamingQueryCommandResult(); r != nil {
			result = r
		}
	})
	return result, err
}

func (q *StreamingQuery) command(c *sparkpb.StreamingQueryCommand) *sparkpb.Command {
	c.QueryId = &sparkpb.StreamingQueryInstanceId{Id: q.id, RunId: q.runID}
	return &sparkpb.Command{CommandType: &sparkpb.Command_StreamingQueryCommand{StreamingQueryCommand: c}}
}

func (s *Session) handle(q listener.Query) *StreamingQuery {
	return &StreamingQuery{s: s, id: q.ID, runID: q.RunID, name: q.Name}
}
