package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"sparkbridge/configs"
	"sparkbridge/internal/control"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// replays are the unfinished replays of one sink, in the journal's state, by the time
// when they were asked for.
type replays struct {
	journal *journal.Journal
	sink    configs.Sink
	mu      sync.Mutex // one change at a time
}

var (
	_ sinks.Replays   = (*replays)(nil)
	_ control.Replays = (*replays)(nil)
)

// errEnough ends an iteration.
var errEnough = errors.New("enough")

// First returns the oldest replay.
func (r *replays) First() (first sinks.Replay, ok bool, err error) {
	err = r.journal.State().Each(journal.ShelfReplays, r.sink.Name, 0, func(_ uint64, blob []byte) error {
		if err := json.Unmarshal(blob, &first); err != nil {
			return fmt.Errorf("decode replay: %w", err)
		}
		ok = true
		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return first, ok, err
}

// Unfinished returns all of them.
func (r *replays) Unfinished() (list []sinks.Replay, err error) {
	err = r.journal.State().Each(journal.ShelfReplays, r.sink.Name, 0, func(_ uint64, blob []byte) error {
		var one sinks.Replay
		if err := json.Unmarshal(blob, &one); err != nil {
			return fmt.Errorf("decode replay: %w", err)
		}
		list = append(list, one)
		return nil
	})
	return list, err
}

// Save stores how far a replay has come, unless it is there no more.
func (r *replays) Save(one sinks.Replay) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	list, err := r.Unfinished()
	if err != nil {
		return err
	}
	for _, stored := range list {
		if stored.ID == one.ID {
			return r.put(one)
		}
	}
	return nil
}

func (r *replays) put(one sinks.Replay) error {
	number, err := strconv.ParseUint(one.ID, 36, 64)
	if err != nil {
		return fmt.Errorf("id of replay: %w", err)
	}
	blob, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("encode replay: %w", err)
	}
	return r.journal.State().Change(journal.ShelfReplays, r.sink.Name, map[uint64][]byte{number: blob})
}

// Finish deletes a replay.
func (r *replays) Finish(id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	number, err := strconv.ParseUint(id, 36, 64)
	if err != nil {
		return fmt.Errorf("id of replay: %w", err)
	}
	return r.journal.State().Change(journal.ShelfReplays, r.sink.Name, nil, number)
}

// Ask stores a new replay. Its id is the moment, and so never that of another.
func (r *replays) Ask(from, to uint64) (sinks.Replay, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := sinks.Replay{ID: strconv.FormatInt(time.Now().UnixNano(), 36), From: from, To: to, Next: from}
	return one, r.put(one)
}

// Count tells how many events of a range the sink wants.
func (r *replays) Count(ctx context.Context, from, to uint64) (n int, err error) {
	source, closeSource, err := r.Open(from, to)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	return sinks.Count(ctx, source, r.sink.Match, r.sink.ProgressEvery)
}

// Open reads a range of the journal.
func (r *replays) Open(from, to uint64) (sinks.Source, func() error, error) {
	reader, err := r.journal.NewReader(from)
	if err != nil {
		return nil, nil, err
	}
	return &strip{tape: tape{reader}, next: from, to: to}, reader.Close, nil
}

// strip is a piece of the tape.
type strip struct {
	tape     tape
	next, to uint64
}

// Next returns the next events of the piece, and io.EOF behind them.
func (s *strip) Next(ctx context.Context, maxEvents, maxBytes int) ([]listener.Event, error) {
	if s.next >= s.to {
		return nil, io.EOF
	}
	events, err := s.tape.Next(ctx, int(min(s.to-s.next, uint64(maxEvents))), maxBytes)
	var lost *sinks.LostError
	switch {
	case errors.As(err, &lost):
		lost.To = min(lost.To, s.to-1) // what is gone behind the piece is not of it
		s.next = lost.To + 1
	case err == nil:
		s.next = events[len(events)-1].Sequence + 1
	}
	return events, err
}
