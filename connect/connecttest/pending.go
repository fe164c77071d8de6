package connecttest

import (
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/sparkpb"
)

// The commands that wait. They are looked at anew whenever a query changes, and when
// their time is over.

// wait completes an operation as soon as settle says that it is, at the latest when its
// time is over. A timeout of nil is none.
func (op *operation) wait(timeout *int64, settle func(over bool) (settled bool, err error)) error {
	if timeout != nil {
		op.due = time.Now().Add(time.Duration(*timeout) * time.Millisecond)
	}
	op.settle = settle
	op.look()
	return nil
}

// look settles an operation that waits, if it is time.
func (op *operation) look() {
	if op.settle == nil {
		return
	}
	over := !op.due.IsZero() && !time.Now().Before(op.due)
	settled, err := op.settle(over)
	if err != nil {
		op.fail(err)
	}
	if settled || err != nil {
		op.settle = nil
	}
}

// fail ends an operation with an error, which is told as often as it is asked for.
func (op *operation) fail(err error) {
	op.failure, op.complete = err, true
	op.wake()
}

// change is how a query changes: its end is noted, and who waits looks again.
func (session *Session) change(change func()) {
	change()
	for _, q := range session.queries {
		if !q.Stopped || q.noted {
			continue
		}
		q.noted = true
		if session.ended == nil || q.Exception != "" {
			session.ended = q
		}
	}
	for _, op := range session.operations {
		op.look()
	}
}

func (session *Session) awaitTermination(op *operation, q *Query, id *sparkpb.StreamingQueryInstanceId, timeout *int64) error {
	if timeout != nil && *timeout <= 0 {
		return session.server.javaError("Timeout has to be positive", "java.lang.IllegalArgumentException", nil)
	}
	return op.wait(timeout, func(over bool) (bool, error) {
		if err := session.failureOf(q); err != nil || !q.Stopped && !over {
			return false, err
		}
		return true, op.answerQuery(&sparkpb.StreamingQueryCommandResult{
			QueryId: id,
			ResultType: &sparkpb.StreamingQueryCommandResult_AwaitTermination{
				AwaitTermination: &sparkpb.StreamingQueryCommandResult_AwaitTerminationResult{Terminated: q.Stopped},
			},
		})
	})
}

// awaitAnyTermination takes a timeout of 0, unlike the other.
func (session *Session) awaitAnyTermination(op *operation, timeout *int64) error {
	return op.wait(timeout, func(over bool) (bool, error) {
		if session.ended == nil && !over {
			return false, nil
		}
		if session.ended != nil {
			if err := session.failureOf(session.ended); err != nil {
				return false, err
			}
		}
		return true, op.answerManager(&sparkpb.StreamingQueryManagerCommandResult{
			ResultType: &sparkpb.StreamingQueryManagerCommandResult_AwaitAnyTermination{
				AwaitAnyTermination: &sparkpb.StreamingQueryManagerCommandResult_AwaitAnyTerminationResult{Terminated: session.ended != nil},
			},
		})
	})
}

func (session *Session) processAllAvailable(op *operation, q *Query, id *sparkpb.StreamingQueryInstanceId) error {
	return op.wait(nil, func(bool) (bool, error) {
		if err := session.failureOf(q); err != nil || q.DataAvailable && !q.Stopped {
			return false, err
		}
		return true, op.answerQuery(&sparkpb.StreamingQueryCommandResult{QueryId: id})
	})
}

// failureOf is the error with which Spark answers a wait for a run that has failed.
func (session *Session) failureOf(q *Query) error {
	if q.Exception == "" || !q.Stopped {
		return nil
	}
	return session.server.streamFailed("Query [id = " + q.ID + ", runId = " + q.RunID + "] terminated with exception: " + q.Exception)
}

// notPlayed is the answer to what this server does not know.
func notPlayed(what any) error {
	return status.Errorf(codes.Unimplemented, "connecttest: %v is not played", what)
}
