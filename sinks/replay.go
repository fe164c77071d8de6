package sinks

import (
	"context"
	"errors"
	"io"
	"time"

	"sparkbridge/listener"
)

// Replay is a range of the journal that a sink is to deliver once more, before it
// goes on where it was.
type Replay struct {
	// ID is told apart from that of other replays of the sink.
	ID string `json:"id"`
	// From and To are sequences; To is the first that does not belong to it.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// Next is where to go on: everything before it is delivered.
	Next uint64 `json:"next"`
	// Missing is how many events before Next retention has deleted before they were
	// delivered again.
	Missing uint64 `json:"missing,omitempty"`
}

// Replays are the unfinished replays of one sink. What a method has returned for is
// durable.
type Replays interface {
	// First returns the replay that is to be worked on, the oldest; ok is false if
	// there is none.
	First() (r Replay, ok bool, err error)
	// Save stores how far a replay has come. One that was cancelled stays so.
	Save(r Replay) error
	// Finish deletes a replay.
	Finish(id string) error
	// Open reads the journal from a sequence up to one that is left out. Behind the
	// last event Next returns io.EOF.
	Open(from, to uint64) (source Source, close func() error, err error)
}

// Count tells how many events of a source that ends a sink wants.
func Count(ctx context.Context, source Source, match Match, progressEvery time.Duration) (n int, err error) {
	thin := newThinner(progressEvery)
	pass := func(listener.Event) { n++ }
	for {
		events, err := source.Next(ctx, maxEvents, maxBytes)
		switch {
		case errors.Is(err, io.EOF):
			thin.flush(pass)
			return n, nil
		case err != nil && !errors.As(err, new(*LostError)):
			return 0, err
		}
		for _, e := range events {
			if match.Wants(&e) {
				thin.offer(e, pass, func(listener.Event) {})
			}
		}
	}
}
