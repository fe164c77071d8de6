package connect

import (
	"context"
	"errors"
	"regexp"
	"time"

	"sparkbridge/connect/sparkpb"
	"sparkbridge/listener"
)

// awaitSlice is how long the server waits at most before it is asked anew. Each question
// keeps the session alive, and a wait that nobody reads any more ends soon.
const awaitSlice = 10 * time.Second

// AwaitTermination waits until the run has ended: nil after a clean end, a *QueryError when it
// has failed, and the error of ctx when that ends first.
func (q *StreamingQuery) AwaitTermination(ctx context.Context) error {
	slice := awaitSlice.Milliseconds()
	for {
		result, err := q.perform(ctx, "await termination", &sparkpb.StreamingQueryCommand{
			Command: &sparkpb.StreamingQueryCommand_AwaitTermination{
				AwaitTermination: &sparkpb.StreamingQueryCommand_AwaitTerminationCommand{TimeoutMs: &slice},
			},
		})
		switch {
		case err != nil:
			return q.failure(ctx, err)
		case result == nil:
			return classify("await termination", errNoResult)
		case result.GetAwaitTermination().GetTerminated():
			return nil
		}
	}
}

// ProcessAllAvailable waits until the run has processed all that its sources had when it
// was called. A run that has failed answers with a *QueryError, and so does one that fails
// meanwhile. Where data keeps coming it may wait for ever; a query with a continuous
// trigger cannot be asked.
func (q *StreamingQuery) ProcessAllAvailable(ctx context.Context) error {
	_, err := q.perform(ctx, "process all available", &sparkpb.StreamingQueryCommand{
		Command: &sparkpb.StreamingQueryCommand_ProcessAllAvailable{ProcessAllAvailable: true},
	})
	return q.failure(ctx, err)
}

// failure is what a wait came to. Spark ends waits for a run that fails with an error of
// its own; what the run has failed with says more.
func (q *StreamingQuery) failure(ctx context.Context, err error) error {
	var refused *Error
	if !errors.As(err, &refused) || refused.meaning != nil {
		return err
	}
	failed, asked := q.Exception(ctx)
	switch {
	case asked != nil:
		return errors.Join(err, asked)
	case failed == nil:
		return err
	}
	return failed
}

// AwaitAnyTermination waits until any query of the session has ended, since the session was made or
// since ResetTerminated: nil after a clean end, a *QueryError when a query has failed. It
// returns at once while there is one that has ended; what a query has failed with is told until
// ResetTerminated, too.
func (s *Streams) AwaitAnyTermination(ctx context.Context) error {
	slice := awaitSlice.Milliseconds()
	for {
		result, err := s.perform(ctx, "await any termination", &sparkpb.StreamingQueryManagerCommand{
			Command: &sparkpb.StreamingQueryManagerCommand_AwaitAnyTermination{
				AwaitAnyTermination: &sparkpb.StreamingQueryManagerCommand_AwaitAnyTerminationCommand{TimeoutMs: &slice},
			},
		})
		switch {
		case err != nil:
			return s.failed(ctx, err)
		case result == nil:
			return classify("await any termination", errNoResult)
		case result.GetAwaitAnyTermination().GetTerminated():
			return nil
		}
	}
}

// failedRun is which run has failed, in what Spark says of it.
var failedRun = regexp.MustCompile(`\[id = ([0-9a-f-]{36}), runId = ([0-9a-f-]{36})\]`)

// failed is which query has failed, and with what.
func (s *Streams) failed(ctx context.Context, err error) error {
	var refused *Error
	if !errors.As(err, &refused) || refused.meaning != nil {
		return err
	}
	ids := failedRun.FindStringSubmatch(refused.Message)
	if ids == nil {
		return err
	}
	return s.session.handle(listener.Query{ID: ids[1], RunID: ids[2]}).failure(ctx, err)
}
