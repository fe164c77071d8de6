// Package listener is the domain of the bridge: what Spark Structured Streaming
// tells about its queries, as events with ids that stay the same however often
// and by whatever way an event arrives.
//
// It decodes both JSON dialects of Spark, keeps the life of every run in order
// (started first, every event once, jumps in batch ids named), and dispatches to
// listeners serially, as Spark's own clients do. It knows nothing of gRPC,
// journals or sinks.
package listener

import (
	"strconv"
	"time"
)

// Kind says what happened.
type Kind string

// The kinds of events. KindStarted, KindProgress, KindIdle and KindTerminated are Spark's own;
// KindGap and KindBus are said by the bridge; KindUnknown is an event of a type that this
// version does not know, passed through.
const (
	KindStarted    Kind = "started"
	KindProgress   Kind = "progress"
	KindIdle       Kind = "idle"
	KindTerminated Kind = "terminated"
	KindGap        Kind = "gap"
	KindBus        Kind = "bus"
	KindUnknown    Kind = "unknown"
)

// Origin says how an event became known.
type Origin string

// The origins of events.
const (
	OriginBus      Origin = "bus"      // sent by Spark on the listener bus
	OriginClient   Origin = "client"   // the start result of a query that the bridge started
	OriginPoll     Origin = "poll"     // read from recent_progress while polling
	OriginBackfill Origin = "backfill" // read from recent_progress to close a gap
	OriginInferred Origin = "inferred" // concluded, not said by Spark
	OriginBridge   Origin = "bridge"   // about the bridge itself
)

// Outcome says how a terminated run ended.
type Outcome string

// The outcomes of a run. Failed and Stopped are read from Spark's terminated
// event; the others belong to ends that were inferred.
const (
	OutcomeFailed        Outcome = "failed"
	OutcomeStopped       Outcome = "stopped"
	OutcomeSessionClosed Outcome = "session_closed"
	OutcomeDriverLost    Outcome = "driver_lost"
	OutcomeUnknown       Outcome = "unknown"
)

// NoBatch is the BatchID of an event that belongs to no batch.
const NoBatch int64 = -1

// Event is one thing that happened to a streaming query, or to the bus that
// carries such events. The payload is Spark's own JSON; the fields beside it are
// the facts needed to route, dedupe and label the event without parsing it again.
type Event struct {
	// Sequence is the event's place in the journal, 0 before it has one.
	Sequence uint64
	// Recorded is when the journal took the event, zero before that.
	Recorded time.Time

	// ID is the same for every repeat of the event, in this process or the next.
	ID     string
	Kind   Kind
	Origin Origin
	// Source is the configured name of the job that the event belongs to.
	Source string
	// UserID and SessionID name the Spark Connect session.
	UserID, SessionID string

	// QueryID stays the same over restarts of a query from its checkpoint,
	// RunID is new with each of them. Both are empty in bus events.
	QueryID, RunID string
	// Name is the query's name, empty where it has none or it is not known.
	Name string
	// BatchID is the id of the batch of a progress event, else NoBatch.
	BatchID int64
	// Time is when it happened, by the clock named in the table of events: of
	// progress the start of the trigger, of terminated the receipt.
	Time time.Time

	// Outcome and ErrorClass are set on terminated events only; ErrorClass is
	// Spark's, empty where Spark gave none (also for some failures).
	Outcome    Outcome
	ErrorClass string
	// Truncated says that the payload was cut to fit a size limit.
	Truncated bool

	// Redacted says that credentials in the payload of this copy were masked. It is no
	// part of the event: the journal has the payload as it came.
	Redacted bool
	// Replay names the replay that this copy of the event belongs to, or the retry of a
	// dead letter, empty at the first delivery. It is no part of the event: the id stays
	// the same.
	Replay string

	// Payload is Spark's JSON, byte for byte: of a progress event the object
	// inside its wrapper, of the others the whole object.
	Payload []byte
}

// QueryLabel is how people call the event's query: its name, its id where it
// has none, the empty string for events of the bus.
func (e *Event) QueryLabel() string {
	if e.Name != "" {
		return e.Name
	}
	return e.QueryID
}

// PartitionKey keeps together what must stay in order: the query id, of events
// of the bus the source name.
func (e *Event) PartitionKey() string {
	if e.QueryID != "" {
		return e.QueryID
	}
	return e.Source
}

// The ids of events. An id holds nothing that differs between the dialects or
// between two deliveries of one event.

func startedID(runID string, origin Origin) string {
	if origin == OriginInferred {
		return runID + ":started:inferred"
	}
	return runID + ":started"
}

func progressID(runID string, batchID int64) string {
	return runID + ":progress:" + strconv.FormatInt(batchID, 10)
}

func idleID(runID string, at time.Time) string {
	return runID + ":idle:" + strconv.FormatInt(at.UnixMilli(), 10)
}

func terminatedID(runID string, origin Origin) string {
	if origin == OriginInferred {
		return runID + ":terminated:inferred"
	}
	return runID + ":terminated"
}

// GapID is the id of a gap event: of the batches of a run from one to another, both lost.
func GapID(runID string, from, to int64) string {
	return runID + ":gap:" + strconv.FormatInt(from, 10) + "-" + strconv.FormatInt(to, 10)
}

// undatedProgressID is the id of a progress event of a Spark that numbers no
// batches.
func undatedProgressID(runID string, at time.Time) string {
	return runID + ":progress:t" + strconv.FormatInt(at.UnixMilli(), 10)
}

// unknownID names an event by the response that carried it: Spark repeats a
// response with the same id.
func unknownID(runID string, r Raw) string {
	id := runID + ":type" + strconv.FormatInt(int64(r.Type), 10) + ":" + r.ResponseID
	if r.Index > 0 {
		id += "." + strconv.Itoa(r.Index)
	}
	return id
}

// BusID is the id of a bus event, known once the journal has given it a place.
func BusID(source string, sequence uint64) string {
	return source + ":bus:" + strconv.FormatUint(sequence, 10)
}
