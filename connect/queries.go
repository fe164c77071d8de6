package connect

import (
	"context"
	"errors"

	"sparkbridge/connect/sparkpb"
	"sparkbridge/listener"
)

var _ listener.Asker = (*Session)(nil)

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
	// The frame with the result may be followed by others.
	var result *sparkpb.StreamingQueryManagerCommandResult
	err := s.run(ctx, "ask for active queries", command, func(frame *sparkpb.ExecutePlanResponse) {
		if r := frame.GetStreamingQueryManagerCommandResult(); r != nil {
			result = r
		}
	})
	if err != nil {
		return nil, err
	}
	if result == nil {
		return nil, classify("ask for active queries", errNoResult)
	}
	queries := make([]listener.Query, 0, len(result.GetActive().GetActiveQueries()))
	for _, q := range result.GetActive().GetActiveQueries() {
		queries = append(queries, listener.Query{ID: q.GetId().GetId(), RunID: q.GetId().GetRunId(), Name: q.GetName()})
	}
	return queries, nil
}
