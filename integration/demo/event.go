package main

import (
	"path"
	"strings"

	"sparkbridge/listener"
)

// event is what the demo shows of an event: some of the attributes of a CloudEvent and of
// Spark's document in it, in the JSON form in which the webhook gets them. docs/events.md
// tells of all of them.
type event struct {
	ID      string   `json:"id"`
	Type    string   `json:"type"`
	Subject string   `json:"subject"`
	RunID   string   `json:"sparkrunid"`
	Outcome string   `json:"sparkoutcome"`
	Data    document `json:"data"`
}

// document is the payload, of whatever kind: Spark's own, or that of gap and bus events.
type document struct {
	BatchID                int64                             `json:"batchId"`
	NumInputRows           int64                             `json:"numInputRows"`
	ProcessedRowsPerSecond *float64                          `json:"processedRowsPerSecond"` // left out if it is not finite
	DurationMs             struct{ TriggerExecution *int64 } `json:"durationMs"`
	EventTime              struct{ Watermark string }        `json:"eventTime"`
	StateOperators         []struct{ NumRowsTotal int64 }    `json:"stateOperators"`

	Exception string `json:"exception"`

	FromBatchID int64 `json:"fromBatchId"`
	ToBatchID   int64 `json:"toBatchId"`

	State  string `json:"state"`
	Reason string `json:"reason"`
}

// kind is the last part of the type's dotted name.
func (e *event) kind() listener.Kind {
	return listener.Kind(strings.TrimPrefix(path.Ext(e.Type), "."))
}
