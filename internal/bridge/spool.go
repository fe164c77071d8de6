package bridge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// spool is the journal as one sink gets it: from its cursor, and with a gap event for
// each run of which retention took events before the sink had read them.
//
// Before retention deletes, the spool is told to forfeit what is going to go. It says
// what that is by gap events, durably, and hands out none of it any more; so what is
// named as lost is lost, even if the reader was faster.
type spool struct {
	tape
	journal *journal.Journal
	sink    string
	match   sinks.Match
	log     *slog.Logger

	mu   sync.Mutex
	next uint64 // what was not handed out yet begins here
	gaps []listener.Event
}

var _ sinks.Source = (*spool)(nil)

func openSpool(j *journal.Journal, reader *journal.Reader, sink string, match sinks.Match, log *slog.Logger) (*spool, error) {
	next, _, err := j.State().Cursor(sink)
	if err != nil {
		return nil, fmt.Errorf("read cursor of sink %s: %w", sink, err)
	}
	s := &spool{tape: tape{reader}, journal: j, sink: sink, match: match, log: log.With("sink", sink), next: next}
	err = j.State().Each(journal.ShelfLosses, sink, next, func(sequence uint64, blob []byte) error {
		e, err := decodeGap(sequence, blob)
		s.gaps = append(s.gaps, e)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read losses of sink %s: %w", sink, err)
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
	s.next = to + 1
	return false
}

// handOut leaves out what was told to be lost while it was read.
func (s *spool) handOut(events []listener.Event) []listener.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(events) > 0 && events[0].Sequence < s.next {
		events = events[1:]
	}
	if n := len(events); n > 0 {
		s.next = events[n-1].Sequence + 1
	}
	return events
}

// forfeit gives up what was not handed out of the events before a sequence, and says so.
func (s *spool) forfeit(ctx context.Context, before uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next >= before {
		return nil
	}
	losses, events, err := s.lost(ctx, before)
	if err != nil {
		return err
	}
	gaps := losses.Gaps(time.Now())
	if err := s.keep(gaps); err != nil {
		return err
	}
	s.log.Error("events lost to retention: the sink was too far behind", "from", s.next, "to", before-1, "events", events, "runs", len(gaps))
	s.gaps = append(s.gaps, gaps...)
	s.next = before
	return nil
}

// lost reads what is going to be lost.
func (s *spool) lost(ctx context.Context, before uint64) (losses listener.Losses, events int, err error) {
	source, closeSource, err := (&replays{journal: s.journal}).Open(s.next, before)
	if err != nil {
		return losses, 0, err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	for piece := source.(*strip); piece.next < piece.to; {
		list, err := piece.Next(ctx, 512, 4<<20)
		if err != nil {
			return losses, 0, err
		}
		for _, e := range list {
			if s.match.Wants(&e) {
				losses.Add(e)
				events++
			}
		}
	}
	return losses, events, nil
}

// keep stores gap events, and lets go of those that were delivered.
func (s *spool) keep(gaps []listener.Event) error {
	cursor, _, err := s.journal.State().Cursor(s.sink)
	if err != nil {
		return err
	}
	var old []uint64
	err = s.journal.State().Each(journal.ShelfLosses, s.sink, 0, func(sequence uint64, _ []byte) error {
		if sequence < cursor {
			old = append(old, sequence)
		}
		return nil
	})
	if err != nil {
		return err
	}
	blobs := make(map[uint64][]byte, len(gaps))
	for _, e := range gaps {
		blobs[e.Sequence] = encodeGap(e)
	}
	return s.journal.State().Change(journal.ShelfLosses, s.sink, blobs, old...)
}

// encodeGap is the time of a gap event and its record.
func encodeGap(e listener.Event) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(e.Recorded.UnixNano())), listener.EncodeRecord(e)...)
}

func decodeGap(sequence uint64, blob []byte) (listener.Event, error) {
	if len(blob) < 8 {
		return listener.Event{}, fmt.Errorf("decode gap event: %d bytes are too few", len(blob))
	}
	return listener.DecodeRecord(sequence, time.Unix(0, int64(binary.BigEndian.Uint64(blob))).UTC(), blob[8:])
}
