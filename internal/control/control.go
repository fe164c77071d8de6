// Package control is what commands can ask of a running bridge: JSON over HTTP, on a
// unix socket in the journal's folder that only its owner can open.
package control

import (
	"context"
	"encoding/json"
	"time"

	"sparkbridge/sinks"
	"sparkbridge/sinks/redact"
)

// Sink is one sink as commands see it.
type Sink struct {
	Name    string
	Letters Letters
	Replays Replays
	// Wake makes the sink look at what was changed.
	Wake func()
}

// Letters are the dead letters of a sink. No sequences stand for all.
type Letters interface {
	// Each calls fn with the letters from a sequence on, in order, until fn returns an
	// error, which it returns. fn must not call the other methods.
	Each(from uint64, fn func(sinks.Letter) error) error
	// Retry marks letters to be tried once more, and returns which.
	Retry(sequences []uint64) ([]uint64, error)
	// Discard deletes letters, and returns which.
	Discard(sequences []uint64) ([]uint64, error)
}

// Replays are the replays of a sink that are not finished.
type Replays interface {
	// Unfinished returns them, the oldest first.
	Unfinished() ([]sinks.Replay, error)
	// Ask stores a new one of the events from a sequence up to one that is left out.
	Ask(from, to uint64) (sinks.Replay, error)
	// Finish deletes one.
	Finish(id string) error
	// Count tells how many events of the range the sink would get.
	Count(ctx context.Context, from, to uint64) (int, error)
}

// Journal tells where a moment is in the journal, and when an event came.
type Journal interface {
	Bounds() (first, next uint64)
	Since(t time.Time) (uint64, error)
	When(sequence uint64) (time.Time, error)
}

// Kept is what the bridge keeps of its sinks, by their names.
type Kept struct {
	Cursors map[string]uint64 // what each needs next
	Letters map[string]int    // how many dead letters there are
}

// Letter is a dead letter as commands show it.
type Letter struct {
	Sink     string      `json:"sink"`
	Sequence uint64      `json:"sequence"`
	ID       string      `json:"id"`
	Kind     string      `json:"kind"`
	Source   string      `json:"source"`
	QueryID  string      `json:"queryId,omitempty"`
	RunID    string      `json:"runId,omitempty"`
	Name     string      `json:"name,omitempty"`
	Recorded time.Time   `json:"recorded"`
	Cause    sinks.Cause `json:"cause"`
	Reason   string      `json:"reason"`
	Attempts int         `json:"attempts"`
	Time     time.Time   `json:"timestamp"`
	Retry    bool        `json:"retry"`
	// Event is the CloudEvent in its JSON form, only of a letter that was asked for by
	// its sequence.
	Event json.RawMessage `json:"event,omitempty"`
}

func letterOf(sink string, l sinks.Letter) Letter {
	e := l.Event
	return Letter{
		Sink: sink, Sequence: e.Sequence, ID: e.ID, Kind: string(e.Kind), Source: e.Source, QueryID: e.QueryID, RunID: e.RunID, Name: e.Name,
		Recorded: e.Recorded, Cause: l.Cause, Reason: redact.Text(l.Reason), Attempts: l.Attempts, Time: l.Time, Retry: l.Retry,
	}
}

// Replay is a replay as commands show it.
type Replay struct {
	Sink string `json:"sink"`
	ID   string `json:"id,omitempty"` // empty after a dry run
	From uint64 `json:"from"`
	To   uint64 `json:"to"` // the first that is left out
	Next uint64 `json:"next"`
	// Events is how many of the range the sink wants; only in the answer to Ask.
	Events int `json:"events,omitempty"`
}

// Range is what to replay: sequences, or times in RFC 3339, or durations back from
// now. Both ends are optional; To is left out of the range.
type Range struct {
	From   string `json:"from,omitempty"`
	To     string `json:"to,omitempty"`
	DryRun bool   `json:"dryRun,omitempty"`
}

// selection is the body of a request that works on dead letters.
type selection struct {
	Sequences []uint64 `json:"sequences"`
	All       bool     `json:"all"`
}

// problem is the body of an answer that is an error.
type problem struct {
	Error string `json:"error"`
}
