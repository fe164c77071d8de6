package bridge

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"sparkbridge/listener"
)

// gapRetention is the reason of a gap that one sink has: the journal deleted the
// events before the sink had got them.
const gapRetention = "retention"

// losses collects events that one sink lost, by run. The zero value has none.
type losses struct {
	runs map[string]*loss
}

// loss is what was lost of one run.
type loss struct {
	last        listener.Event // the last event, for the names
	first       uint64
	events      int
	batches     bool
	low, high   int64
	earlierName string
}

// lostPayload is that of a gap, with the number of events besides. The batch ids are
// null where only events were lost that belong to no batch.
type lostPayload struct {
	ID          string  `json:"id"`
	RunID       string  `json:"runId"`
	Name        *string `json:"name"`
	FromBatchID *int64  `json:"fromBatchId"`
	ToBatchID   *int64  `json:"toBatchId"`
	Reason      string  `json:"reason"`
	Timestamp   string  `json:"timestamp"`
	Events      int     `json:"events"`
}

// add notes an event that was lost. Those of the bus belong to no run and are left out.
func (l *losses) add(e listener.Event) {
	if e.RunID == "" {
		return
	}
	if l.runs == nil {
		l.runs = map[string]*loss{}
	}
	of := l.runs[e.RunID]
	if of == nil {
		of = &loss{first: e.Sequence}
		l.runs[e.RunID] = of
	}
	of.earlierName = cmp.Or(e.Name, of.earlierName)
	of.last = e
	of.events++
	if e.Kind == listener.KindProgress && e.BatchID != listener.NoBatch {
		if !of.batches {
			of.low, of.high, of.batches = e.BatchID, e.BatchID, true
		}
		of.low, of.high = min(of.low, e.BatchID), max(of.high, e.BatchID)
	}
}

// gaps returns a gap event for each run, in the order of the journal. Each has the
// sequence of the last event that was lost of its run, and counts as recorded at the
// given time.
func (l *losses) gaps(at time.Time) []listener.Event {
	list := make([]listener.Event, 0, len(l.runs))
	for runID, of := range l.runs {
		list = append(list, of.gap(runID, at.UTC()))
	}
	slices.SortFunc(list, func(a, b listener.Event) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return list
}

func (of *loss) gap(runID string, at time.Time) listener.Event {
	e := of.last
	payload := lostPayload{
		ID: e.QueryID, RunID: runID, Reason: gapRetention,
		Timestamp: at.Format("2006-01-02T15:04:05.000Z"), Events: of.events, // as Spark prints instants
	}
	if of.earlierName != "" {
		payload.Name = &of.earlierName
	}
	id := runID + ":gap:s" + strconv.FormatUint(of.first, 10) + "-" + strconv.FormatUint(e.Sequence, 10)
	if of.batches {
		payload.FromBatchID, payload.ToBatchID = &of.low, &of.high
		id = listener.GapID(runID, of.low, of.high)
	}
	body, err := json.Marshal(payload)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", payload, err)) // its type cannot fail
	}
	return listener.Event{
		Sequence: e.Sequence, Recorded: at, ID: id, Kind: listener.KindGap, Origin: listener.OriginBridge,
		Source: e.Source, UserID: e.UserID, SessionID: e.SessionID,
		QueryID: e.QueryID, RunID: runID, Name: of.earlierName, BatchID: listener.NoBatch, Time: at, Payload: body,
	}
}
