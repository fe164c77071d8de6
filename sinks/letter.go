package sinks

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"sparkbridge/listener"
)

// Cause says why an event is among the dead letters.
type Cause string

// The causes.
const (
	CauseRefused Cause = "refused" // the destination will never take it
	CauseAlone   Cause = "alone"   // it failed for longer than GiveUp while others went through
	CauseExpired Cause = "expired" // it was older than MaxAge when its turn came
)

// Letter is an event that was not delivered, and why.
type Letter struct {
	Event listener.Event
	Cause Cause
	// Reason is the last error in words.
	Reason string
	// Attempts counts the deliveries that were tried with this event alone, and the
	// one that was answered by a refusal.
	Attempts int
	// Time is when it became a dead letter, or was last tried as one.
	Time time.Time
	// Retry says that it is to be tried once more.
	Retry bool
}

// ErrLettersFull says that a sink may not have more dead letters.
var ErrLettersFull = errors.New("the dead letters are full")

// Letters are the dead letters of one sink, by the sequence of their events. What
// a method has returned for is durable.
type Letters interface {
	// Add stores letters, in the place of those with the same sequence. It returns
	// ErrLettersFull, and has stored none, where there is no room.
	Add(letters ...Letter) error
	// Each calls fn with the letters from a sequence on, in order, until fn returns an
	// error, which it returns. fn must not call the other methods.
	Each(from uint64, fn func(Letter) error) error
	// Drop deletes a letter; one that is not there is no error.
	Drop(sequence uint64) error
}

// letterForm is a letter as it is stored. The event is a record of the journal.
type letterForm struct {
	Sequence uint64    `json:"sequence"`
	Recorded time.Time `json:"recorded"`
	Cause    Cause     `json:"cause"`
	Reason   string    `json:"reason"`
	Attempts int       `json:"attempts"`
	Time     time.Time `json:"time"`
	Retry    bool      `json:"retry,omitempty"`
	Record   []byte    `json:"record"`
}

// EncodeLetter returns the letter as bytes for a store.
func EncodeLetter(l Letter) ([]byte, error) {
	blob, err := json.Marshal(letterForm{
		l.Event.Sequence, l.Event.Recorded, l.Cause, l.Reason, l.Attempts, l.Time.UTC(), l.Retry, listener.EncodeRecord(l.Event),
	})
	if err != nil {
		return nil, fmt.Errorf("encode dead letter: %w", err)
	}
	return blob, nil
}

// DecodeLetter reads what EncodeLetter made.
func DecodeLetter(blob []byte) (Letter, error) {
	var f letterForm
	if err := json.Unmarshal(blob, &f); err != nil {
		return Letter{}, fmt.Errorf("decode dead letter: %w", err)
	}
	e, err := listener.DecodeRecord(f.Sequence, f.Recorded, f.Record)
	if err != nil {
		return Letter{}, fmt.Errorf("decode dead letter: %w", err)
	}
	return Letter{e, f.Cause, f.Reason, f.Attempts, f.Time, f.Retry}, nil
}
