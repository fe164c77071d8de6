package console

import (
	"encoding/json"

	"sparkbridge/connect"
)

// instance is which run is meant, in JSON, with Spark's own names. A query without a name
// has null.
type instance struct {
	ID    string  `json:"id"`
	RunID string  `json:"runId"`
	Name  *string `json:"name"`
}

func instanceOf(q *connect.StreamingQuery) instance {
	i := instance{ID: q.ID(), RunID: q.RunID()}
	if name := q.Name(); name != "" {
		i.Name = &name
	}
	return i
}

// statusDocument is a run and what it does.
type statusDocument struct {
	instance
	connect.Status
}

// listDocument is a run, what it does, and the last that it has done: Spark's own progress
// document, or null.
type listDocument struct {
	statusDocument
	LastProgress json.RawMessage `json:"lastProgress"`
}

// exceptionDocument is what a run has failed with, or null.
type exceptionDocument struct {
	instance
	Exception *failure `json:"exception"`
}

// endDocument is how a wait for a run has ended.
type endDocument struct {
	instance
	IsActive     bool            `json:"isActive"`
	Exception    *failure        `json:"exception"`
	LastProgress json.RawMessage `json:"lastProgress"`
}

// explainDocument is the plan of a run.
type explainDocument struct {
	instance
	Explain string `json:"explain"`
}

// failure is what a run has failed with.
type failure struct {
	Message    string `json:"message"`
	ErrorClass string `json:"errorClass"`
	StackTrace string `json:"stackTrace"`
}

// failureOf is nil where nothing has failed.
func failureOf(e *connect.QueryError) *failure {
	if e == nil {
		return nil
	}
	return &failure{Message: e.Message, ErrorClass: e.ErrorClass, StackTrace: e.StackTrace}
}

// anyDocument is how a wait for any query has ended. Which one it was, Spark tells only
// where it has failed.
type anyDocument struct {
	Terminated bool     `json:"terminated"`
	ID         string   `json:"id,omitempty"`
	RunID      string   `json:"runId,omitempty"`
	Exception  *failure `json:"exception"`
}
