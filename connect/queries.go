package connect

import (
	"context"
	"errors"

	"sparkbridge/connect/sparkpb"
	"sparkbridge/listener"
)

var _ listener.Spark = (*Session)(nil)

// errNoResult is a command that ended well without the result it was run for.
var errNoResult = errors.New("the server ended the answer without a result")

// Active asks which streaming queries of the session run right now. It never
// creates the session: one that is not there answers ErrSessionNotFound.
func (s *Session) Active(ctx context.Context) ([]listener.Query, error) {
	command := &sparkpb.Command{CommandType: &sparkpb.Command_StreamingQueryManagerCommand{
		StreamingQueryManagerCommand: &sparkpb.StreamingQueryManagerCommand{
			Command: &sparkpb.StreamingQueryManagerCommand_Active{Active: true},
		},
	}}
	result, err := answer(ctx, s, "ask for active queries", command, (*sparkpb.ExecutePlanResponse).GetStreamingQueryManagerCommandResult)
	if err != nil {
		return nil, err
	}
	queries := make([]listener.Query, 0, len(result.GetActive().GetActiveQueries()))
	for _, q := range result.GetActive().GetActiveQueries() {
		queries = append(queries, listener.Query{ID: q.GetId().GetId(), RunID: q.GetId().GetRunId(), Name: q.GetName()})
	}
	return queries, nil
}

// LastProgress asks for the newest progress document of a run, nil where it has
// none. It answers for an hour after the end of a run, and then listener.ErrNoQuery.
func (s *Session) LastProgress(ctx context.Context, q listener.Query) ([]byte, error) {
	documents, err := s.progress(ctx, "ask for last progress", q, &sparkpb.StreamingQueryCommand{
		Command: &sparkpb.StreamingQueryCommand_LastProgress{LastProgress: true},
	})
	if err != nil || len(documents) == 0 {
		return nil, err
	}
	return documents[len(documents)-1], nil
}

// RecentProgress asks for the progress documents that Spark keeps of a run, oldest
// first; by default the last 99.
func (s *Session) RecentProgress(ctx context.Context, q listener.Query) ([][]byte, error) {
	return s.progress(ctx, "ask for recent progress", q, &sparkpb.StreamingQueryCommand{
		Command: &sparkpb.StreamingQueryCommand_RecentProgress{RecentProgress: true},
	})
}

func (s *Session) progress(ctx context.Context, op string, q listener.Query, command *sparkpb.StreamingQueryCommand) ([][]byte, error) {
	result, err := s.query(ctx, op, q, command)
	if err != nil {
		return nil, err
	}
	var documents [][]byte
	for _, document := range result.GetRecentProgress().GetRecentProgressJson() {
		documents = append(documents, []byte(document))
	}
	return documents, nil
}

// Exception asks what a run has failed with, nil where it has not failed.
func (s *Session) Exception(ctx context.Context, q listener.Query) (*listener.Failure, error) {
	result, err := s.query(ctx, "ask for exception", q, &sparkpb.StreamingQueryCommand{
		Command: &sparkpb.StreamingQueryCommand_Exception{Exception: true},
	})
	if err != nil {
		return nil, err
	}
	e := result.GetException()
	if e == nil || e.ExceptionMessage == nil {
		return nil, nil
	}
	return &listener.Failure{Message: e.GetExceptionMessage(), ErrorClass: e.GetErrorClass(), StackTrace: e.GetStackTrace()}, nil
}

// query sends a command to a run, which is named by both its ids.
func (s *Session) query(ctx context.Context, op string, q listener.Query, command *sparkpb.StreamingQueryCommand) (*sparkpb.StreamingQueryCommandResult, error) {
	command.QueryId = &sparkpb.StreamingQueryInstanceId{Id: q.ID, RunId: q.RunID}
	return answer(ctx, s, op, &sparkpb.Command{CommandType: &sparkpb.Command_StreamingQueryCommand{StreamingQueryCommand: command}},
		(*sparkpb.ExecutePlanResponse).GetStreamingQueryCommandResult)
}

// answer runs a command and returns its result. The frame with the result may be
// followed by others.
func answer[Result any](ctx context.Context, s *Session, op string, command *sparkpb.Command, of func(*sparkpb.ExecutePlanResponse) *Result) (*Result, error) {
	var result *Result
	err := s.run(ctx, op, command, func(frame *sparkpb.ExecutePlanResponse) {
		if r := of(frame); r != nil {
			result = r
		}
	})
	if err != nil {
		return nil, err
	}
	if result == nil {
		return nil, classify(op, errNoResult)
	}
	return result, nil
}
