package listener

import (
	"time"

	"github.com/tidwall/gjson"
)

// decode reads one event of the listener bus. received is the time of events that
// carry none. It never fails: what it cannot read as the type that Spark gave it
// becomes an Unknown event, so that nothing is lost.
//
// The shapes are those of Spark's StreamingQueryListener events: progress is
// wrapped in {"progress": …}; idle is {id, runId, timestamp}; terminated is
// {id, runId, exception, errorClassOnException}.
func decode(r Raw, received time.Time) Event {
	e := Event{Origin: OriginBus, BatchID: NoBatch, Time: received, Payload: r.JSON}
	if gjson.ValidBytes(r.JSON) {
		switch r.Type {
		case TypeProgress:
			decodeProgress(&e)
		case TypeIdle:
			decodeIdle(&e)
		case TypeTerminated:
			decodeTerminated(&e)
		default:
			decodeIDs(&e)
		}
	}
	if e.Kind == "" || e.RunID == "" {
		e.Kind = KindUnknown
		e.ID = unknownID(e.RunID, r)
	}
	return e
}

// decodeIDs reads what all events of a query have in common.
func decodeIDs(e *Event) {
	fields := gjson.GetManyBytes(e.Payload, "id", "runId", "name")
	e.QueryID, e.RunID = text(fields[0]), text(fields[1])
	e.Name = text(fields[2])
}

// decodeProgress unwraps the document and reads its facts. Documents of before
// Spark 2.2 have no batch id: their time tells them apart.
func decodeProgress(e *Event) {
	if inner := gjson.GetBytes(e.Payload, "progress"); inner.IsObject() {
		e.Payload = raw(e.Payload, inner)
	}
	decodeIDs(e)
	fields := gjson.GetManyBytes(e.Payload, "timestamp", "batchId")
	at, timed := instant(fields[0])
	if timed {
		e.Time = at
	}
	switch batch := fields[1]; {
	case batch.Type == gjson.Number && batch.Int() >= 0:
		e.Kind, e.BatchID = KindProgress, batch.Int()
		e.ID = progressID(e.RunID, e.BatchID)
	case timed && !batch.Exists():
		e.Kind, e.ID = KindProgress, undatedProgressID(e.RunID, at)
	}
}

// decodeIdle reads an idle event; without its time it could not be told from the
// next one, so it is then none.
func decodeIdle(e *Event) {
	decodeIDs(e)
	if at, ok := instant(gjson.GetBytes(e.Payload, "timestamp")); ok {
		e.Kind, e.Time, e.ID = KindIdle, at, idleID(e.RunID, at)
	}
}

// decodeTerminated reads an end. Only the exception tells a failure from a stop:
// the error class is null for some failures too (a Python function's, on 4.0).
func decodeTerminated(e *Event) {
	decodeIDs(e)
	fields := gjson.GetManyBytes(e.Payload, "exception", "errorClassOnException")
	e.Kind, e.ID = KindTerminated, terminatedID(e.RunID, OriginBus)
	e.Outcome, e.ErrorClass = OutcomeStopped, text(fields[1])
	if fields[0].Exists() && fields[0].Type != gjson.Null {
		e.Outcome = OutcomeFailed
	}
}

// text is a string field's value; a field of another type has none.
func text(r gjson.Result) string {
	if r.Type != gjson.String {
		return ""
	}
	return r.Str
}

// instant reads a timestamp as Spark prints it: UTC with milliseconds.
func instant(r gjson.Result) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339Nano, text(r))
	return at.UTC(), err == nil
}

// raw returns the bytes of a value inside the document that it was read from.
func raw(document []byte, r gjson.Result) []byte {
	if r.Index > 0 && r.Index+len(r.Raw) <= len(document) {
		return document[r.Index : r.Index+len(r.Raw)]
	}
	return []byte(r.Raw)
}
