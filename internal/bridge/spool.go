package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// spool is the journal as one sink gets it: from its cursor, and with a gap event for
// each run of which retention took events before the sink had read them.
//
// Before retention deletes, the spool is told to forfeit what is going to go. It says
// what that is by gap events, durably, and hands out none of it any more; so what is
// named as lost is lost, even if the reader was faster. What the sink has read and not
// yet delivered goes on in memory; it is noted too, and is lost only if the process
// ends before it is delivered.
type spool struct {
	tape
	journal *journal.Journal
	sink    string
	match   sinks.Match
	log     *slog.Logger
	gone    atomic.Uint64 // events lost since the start
	// settled says whether the sink is done with an event that was handed out.
	settled func(sequence uint64) bool

	mu    sync.Mutex
	next  uint64 // what was not handed out yet begins here
	noted uint64 // what was handed out is noted up to here
	gaps  []listener.Event
	// unkept are gaps that are not stored yet, for want of room.
	unkept []listener.Event
}

var _ sinks.Source = (*spool)(nil)

func openSpool(j *journal.Journal, reader *journal.Reader, sink string, match sinks.Match, log *slog.Logger) (*spool, error) {
	next, _, err := j.State().Cursor(sink)
	if err != nil {
		return nil, fmt.Errorf("read cursor of sink %s: %w", sink, err)
	}
	s := &spool{tape: tape{reader}, journal: j, sink: sink, match: match, log: log.With("sink", sink), next: next, noted: next,
		settled: func(uint64) bool { return false }}
	if err := s.admitLosses(); err != nil {
		return nil, fmt.Errorf("read losses of sink %s: %w", sink, err)
	}
	if s.gaps, err = s.shelved(journal.ShelfLosses, next); err != nil {
		return nil, fmt.Errorf("read losses of sink %s: %w", sink, err)
	}
	if first, _ := j.Bounds(); next < first {
		if len(s.gaps) == 0 {
			s.log.Error("events lost to retention: no bridge had this sink when they went", "from", next, "to", first-1)
		}
		s.next, s.noted = first, first
	}
	return s, nil
}

// Next returns the gap events of what was lost, and then what the journal has.
func (s *spool) Next(ctx context.Context, maxEvents, maxBytes int) ([]listener.Event, error) {
	for {
		if gaps := s.takeGaps(); len(gaps) > 0 {
			return gaps, nil
		}
		events, err := s.tape.Next(ctx, maxEvents, maxBytes)
		var lost *sinks.LostError
		switch {
		case errors.As(err, &lost) && s.forfeited(lost.To):
			continue // it was told before
		case err != nil:
			return nil, err
		}
		if events = s.handOut(events); len(events) > 0 {
			return events, nil
		}
	}
}

func (s *spool) takeGaps() []listener.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	gaps := s.gaps
	s.gaps = nil
	return gaps
}

// forfeited says that everything up to a sequence was told to be lost.
func (s *spool) forfeited(to uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if to < s.next {
		return true
	}
	s.next, s.noted = to+1, to+1
	return false
}

// handOut leaves out what was told to be lost while it was read, and says so first: a
// cursor that is behind it must not pass what tells of it.
func (s *spool) handOut(events []listener.Event) []listener.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(events) > 0 && events[0].Sequence < s.next {
		events = events[1:]
	}
	if n := len(events); n > 0 {
		s.next = events[n-1].Sequence + 1
	}
	if len(s.gaps) > 0 {
		events, s.gaps = append(s.gaps, events...), nil
	}
	return events
}
