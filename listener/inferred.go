package listener

import (
	"encoding/json"
	"fmt"

	"sparkbridge/dedupe"
)

// started returns an inferred start of a run that has none yet. Its payload has
// the shape of Spark's started event, with null for what Spark did not say.
func (a *Admission) started(runID string) []Event {
	if !a.marks.Started(runID) {
		return nil
	}
	l, at := a.life(runID), a.now().UTC()
	return []Event{a.stamp(Event{
		ID: startedID(runID, OriginInferred), Kind: KindStarted, Origin: OriginInferred,
		QueryID: l.QueryID, RunID: runID, Name: l.Name, BatchID: NoBatch, Time: at,
		Payload: mustJSON(startedPayload{ID: l.QueryID, RunID: runID, Name: orNull(l.Name)}),
	})}
}

type startedPayload struct {
	ID        string  `json:"id"`
	RunID     string  `json:"runId"`
	Name      *string `json:"name"`
	Timestamp *string `json:"timestamp"`
}

// GapNotReceived is the reason of a gap in what the bus carried: the batches ran,
// but their events never came.
const GapNotReceived = "not_received"

// GapTooLarge is the reason of a gap that an event left which was too large to be
// received.
const GapTooLarge = "too_large"

type gapPayload struct {
	ID          string  `json:"id"`
	RunID       string  `json:"runId"`
	Name        *string `json:"name"`
	FromBatchID int64   `json:"fromBatchId"`
	ToBatchID   int64   `json:"toBatchId"`
	Reason      string  `json:"reason"`
	Timestamp   string  `json:"timestamp"`
}

// gap names batches of a run that cannot be had.
func (a *Admission) gap(runID string, missing dedupe.Range) Event {
	l, at := a.life(runID), a.now().UTC()
	return a.stamp(Event{
		ID: GapID(runID, missing.From, missing.To), Kind: KindGap, Origin: OriginBridge,
		QueryID: l.QueryID, RunID: runID, Name: l.Name, BatchID: NoBatch, Time: at,
		Payload: mustJSON(gapPayload{
			ID: l.QueryID, RunID: runID, Name: orNull(l.Name), FromBatchID: missing.From, ToBatchID: missing.To,
			Reason: a.gapReason, Timestamp: at.Format(timestampLayout),
		}),
	})
}

type terminatedPayload struct {
	ID         string  `json:"id"`
	RunID      string  `json:"runId"`
	Exception  *string `json:"exception"`
	ErrorClass *string `json:"errorClassOnException"`
}

// inferEnd returns an inferred end of a run that has none yet, with what Spark
// still knew of its failure. The class that Spark gives then is the wrapper's, so
// the cause's stays unknown.
func (a *Admission) inferEnd(runID string, outcome Outcome, failure *Failure) []Event {
	if !a.marks.InferEnd(runID, a.now()) {
		return nil
	}
	l := a.life(runID)
	payload := terminatedPayload{ID: l.QueryID, RunID: runID}
	if failure != nil {
		payload.Exception = &failure.Message
	}
	e := Event{
		ID: terminatedID(runID, OriginInferred), Kind: KindTerminated, Origin: OriginInferred,
		QueryID: l.QueryID, RunID: runID, Name: l.Name, BatchID: NoBatch, Time: a.now().UTC(),
		Outcome: outcome, Payload: mustJSON(payload),
	}
	if e.Time.Before(l.Last) {
		e.Time = l.Last
	}
	return []Event{a.stamp(e)}
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// timestampLayout is how Spark prints instants in its events.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// mustJSON encodes a value of a type of this package, which cannot fail.
func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return b
}
