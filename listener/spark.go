package listener

import (
	"context"
	"errors"
)

// Query names one run of a query of a session.
type Query struct {
	ID, RunID string
	Name      string // empty where the query has none
}

// Spark answers what a session knows of its queries. An error other than ErrNoQuery
// and ErrTooLarge is no answer: it may be asked again.
type Spark interface {
	// Active returns the queries that run right now.
	Active(ctx context.Context) ([]Query, error)
	Historian
}

// Historian answers what a run has done, for an hour after its end too.
type Historian interface {
	// LastProgress returns the newest progress document of a run in the dialect that
	// FromRecentProgress reads, nil where it has none.
	LastProgress(ctx context.Context, q Query) ([]byte, error)
	// RecentProgress returns the documents that Spark keeps of a run (the last 100),
	// oldest first.
	RecentProgress(ctx context.Context, q Query) ([][]byte, error)
	// Exception returns what a run has failed with, nil where it has not failed.
	Exception(ctx context.Context, q Query) (*Failure, error)
}

// ErrNoQuery is the answer that Spark does not know a query, or not this run of it.
var ErrNoQuery = errors.New("spark does not know the query")

// ErrTooLarge is an answer that is larger than this client receives. It is the same
// each time, until Spark has less to tell.
var ErrTooLarge = errors.New("a message is larger than grpc_max_message_size")

// Failure is what a run has failed with.
type Failure struct {
	Message string // whole
	// ErrorClass is STREAM_FAILED for all that fails inside a query; the class of the
	// cause stands in the message.
	ErrorClass string
	StackTrace string
}
