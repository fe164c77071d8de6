package lines

import (
	"path"
	"strings"

	"sparkbridge/listener"
)

// Event is what people are shown of an event: some of the attributes of a CloudEvent and
// of the document in it, read from the structured JSON form. docs/events.md tells of all
// of them.
type Event struct {
	ID      string   `json:"id"`
	Type    string   `json:"type"`
	Subject string   `json:"subject"`
	RunID   string   `json:"sparkrunid"`
	Outcome string   `json:"sparkoutcome"`
	Data    Document `json:"data"`
}

// Document is the payload, of whatever kind: Spark's own, or that of gap and bus events.
type Document struct {
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

// Kind is the last part of the type's dotted name.
func (e *Event) Kind() listener.Kind {
	return listener.Kind(strings.TrimPrefix(path.Ext(e.Type), "."))
}
