package bridge

import (
	"context"
	"errors"
	"fmt"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// tape is the journal as a sink reads it: events by sequence, from a cursor.
type tape struct{ reader *journal.Reader }

var _ sinks.Source = tape{}

// Next returns the next events. A record of a form that this version does not
// know ends it, since skipping one would lose an event.
func (t tape) Next(ctx context.Context, maxEvents, maxBytes int) ([]listener.Event, error) {
	records, err := t.reader.Next(ctx, maxEvents, maxBytes)
	var retired *journal.RetiredError
	if errors.As(err, &retired) {
		return nil, &sinks.LostError{From: retired.From, To: retired.To}
	}
	if err != nil {
		return nil, err
	}
	events := make([]listener.Event, len(records))
	for i, r := range records {
		if events[i], err = listener.DecodeRecord(r.Sequence, r.Time, r.Body); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// Close lets go of the journal.
func (t tape) Close() error { return t.reader.Close() }

// cursor is the stored place of one sink.
type cursor struct {
	state *journal.State
	sink  string
}

// Save stores the place.
func (c cursor) Save(next uint64) error {
	return c.state.SaveCursors(map[string]uint64{c.sink: next})
}

// openTape opens the journal at the sink's cursor. A sink that has none starts with
// what comes from now on, or with the oldest, and its place is kept from then.
func openTape(j *journal.Journal, sink string, from configs.From) (*journal.Reader, error) {
	next, ok, err := j.State().Cursor(sink)
	if err != nil {
		return nil, fmt.Errorf("read cursor of sink %s: %w", sink, err)
	}
	if !ok {
		var first uint64
		if first, next = j.Bounds(); from == configs.FromOldest {
			next = first
		}
		if err := (cursor{j.State(), sink}).Save(next); err != nil {
			return nil, fmt.Errorf("save cursor of sink %s: %w", sink, err)
		}
	}
	reader, err := j.NewReader(next)
	if err != nil {
		return nil, fmt.Errorf("read journal for sink %s: %w", sink, err)
	}
	return reader, nil
}
