package connect

import (
	"context"
	"sync"

	"sparkbridge/connect/sparkpb"
	"sparkbridge/listener"
)

// Streams are the queries of a session, whoever has started them. Its methods may be called by
// several goroutines at once.
type Streams struct {
	session *Session
	bus     *listener.Bus

	mu    sync.Mutex
	loops map[*loop]struct{} // that read the bus
}

// Streams are the queries of the session.
func (s *Session) Streams() *Streams {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams == nil {
		s.streams = newStreams(s)
	}
	return s.streams
}

// Active are the queries that run at the moment.
func (s *Streams) Active(ctx context.Context) ([]*StreamingQuery, error) {
	result, err := s.ask(ctx, "ask for active queries", &sparkpb.StreamingQueryManagerCommand{
		Command: &sparkpb.StreamingQueryManagerCommand_Active{Active: true},
	})
	var queries []*StreamingQuery
	for _, q := range result.GetActive().GetActiveQueries() {
		queries = append(queries, s.found(q))
	}
	return queries, err
}

// Get finds the query of an id that runs at the moment, with the run that it is in; nil
// where there is none. An id that is not a UUID is an *Error.
func (s *Streams) Get(ctx context.Context, id string) (*StreamingQuery, error) {
	result, err := s.ask(ctx, "get query", &sparkpb.StreamingQueryManagerCommand{
		Command: &sparkpb.StreamingQueryManagerCommand_GetQuery{GetQuery: id},
	})
	if err != nil || result.GetQuery() == nil {
		return nil, err
	}
	return s.found(result.GetQuery()), nil
}

// ResetTerminated lets AwaitAnyTermination forget the queries that have ended so far, for
// all clients of the session.
func (s *Streams) ResetTerminated(ctx context.Context) error {
	_, err := s.ask(ctx, "reset terminated", &sparkpb.StreamingQueryManagerCommand{
		Command: &sparkpb.StreamingQueryManagerCommand_ResetTerminated{ResetTerminated: true},
	})
	return err
}

func (s *Streams) found(q *sparkpb.StreamingQueryManagerCommandResult_StreamingQueryInstance) *StreamingQuery {
	return &StreamingQuery{s: s.session, id: q.GetId().GetId(), runID: q.GetId().GetRunId(), name: q.GetName()}
}

// ask asks something that is answered at once, and may be asked again.
func (s *Streams) ask(ctx context.Context, op string, command *sparkpb.StreamingQueryManagerCommand) (*sparkpb.StreamingQueryManagerCommandResult, error) {
	var result *sparkpb.StreamingQueryManagerCommandResult
	err := s.session.demand(ctx, op, func(ctx context.Context, spark sparkpb.SparkConnectServiceClient) error {
		return s.session.execute(ctx, spark, managerCommand(command), func(frame *sparkpb.ExecutePlanResponse) {
			if r := frame.GetStreamingQueryManagerCommandResult(); r != nil {
				result = r
			}
		})
	})
	if err == nil && result == nil {
		err = classify(op, errNoResult)
	}
	return result, err
}

// perform asks something that may take long.
func (s *Streams) perform(ctx context.Context, op string, command *sparkpb.StreamingQueryManagerCommand) (*sparkpb.StreamingQueryManagerCommandResult, error) {
	var result *sparkpb.StreamingQueryManagerCommandResult
	err := s.session.perform(ctx, op, planOf(managerCommand(command)), func(frame *sparkpb.ExecutePlanResponse) {
		if r := frame.GetStreamingQueryManagerCommandResult(); r != nil {
			result = r
		}
	})
	return result, err
}

func managerCommand(c *sparkpb.StreamingQueryManagerCommand) *sparkpb.Command {
	return &sparkpb.Command{CommandType: &sparkpb.Command_StreamingQueryManagerCommand{StreamingQueryManagerCommand: c}}
}
