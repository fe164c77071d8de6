package listener

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// recordVersion starts every record, so that a later form can be told from this
// one.
const recordVersion = 1

// facts is what a record keeps of an event beside its payload. Sequence and
// Recorded are the journal's to keep.
type facts struct {
	ID         string    `json:"id,omitempty"`
	Kind       Kind      `json:"kind"`
	Origin     Origin    `json:"origin"`
	Source     string    `json:"source"`
	UserID     string    `json:"userId,omitempty"`
	SessionID  string    `json:"sessionId,omitempty"`
	QueryID    string    `json:"queryId,omitempty"`
	RunID      string    `json:"runId,omitempty"`
	Name       string    `json:"name,omitempty"`
	BatchID    int64     `json:"batchId"`
	Time       time.Time `json:"time"`
	Outcome    Outcome   `json:"outcome,omitempty"`
	ErrorClass string    `json:"errorClass,omitempty"`
	Truncated  bool      `json:"truncated,omitempty"`
}

// EncodeRecord returns the event as a journal keeps it: the version, the length
// of the facts as an unsigned varint, the facts as JSON, and the payload as it is.
func EncodeRecord(e Event) []byte {
	f := mustJSON(facts{
		e.ID, e.Kind, e.Origin, e.Source, e.UserID, e.SessionID, e.QueryID, e.RunID,
		e.Name, e.BatchID, e.Time.UTC(), e.Outcome, e.ErrorClass, e.Truncated,
	})
	out := make([]byte, 0, 1+binary.MaxVarintLen64+len(f)+len(e.Payload))
	out = binary.AppendUvarint(append(out, recordVersion), uint64(len(f)))
	return append(append(out, f...), e.Payload...)
}

// DecodeRecord reads an event back, with the place and the time that the journal
// gave it. The payload shares the record's memory. The id of a bus event follows
// from its place.
func DecodeRecord(sequence uint64, recorded time.Time, record []byte) (Event, error) {
	if len(record) == 0 || record[0] != recordVersion {
		return Event{}, fmt.Errorf("decode record %d: form %.1x is not known to this version", sequence, record)
	}
	size, n := binary.Uvarint(record[1:])
	if n <= 0 || size > uint64(len(record)-1-n) {
		return Event{}, fmt.Errorf("decode record %d: %w", sequence, errors.New("facts are longer than the record"))
	}
	var f facts
	body := record[1+n:]
	if err := json.Unmarshal(body[:size], &f); err != nil {
		return Event{}, fmt.Errorf("decode record %d: %w", sequence, err)
	}
	e := Event{
		Sequence: sequence, Recorded: recorded,
		ID: f.ID, Kind: f.Kind, Origin: f.Origin, Source: f.Source,
		UserID: f.UserID, SessionID: f.SessionID, QueryID: f.QueryID, RunID: f.RunID,
		Name: f.Name, BatchID: f.BatchID, Time: f.Time,
		Outcome: f.Outcome, ErrorClass: f.ErrorClass, Truncated: f.Truncated,
		Payload: body[size:],
	}
	if e.Kind == KindBus {
		e.ID = BusID(e.Source, sequence)
	}
	return e, nil
}
