package bridge

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
	"time"

	"sparkbridge/internal/journal"
	"sparkbridge/listener"
)

// forfeit gives up what was not handed out of the events before a sequence, and says so.
// On a full disk memory alone knows of it until there is room: what retention frees is
// needed there.
func (s *spool) forfeit(ctx context.Context, before uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.note(ctx, min(s.next, before)); err != nil && !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	if err := s.lose(ctx, before); err != nil {
		return err
	}
	switch err := s.keep(s.unkept); {
	case err == nil:
		s.unkept = nil
	case !errors.Is(err, syscall.ENOSPC):
		return err
	}
	return nil
}

// lose makes gap events of what was not handed out. The caller holds mu.
func (s *spool) lose(ctx context.Context, before uint64) error {
	if s.next >= before {
		return nil
	}
	var taken losses
	events := 0
	err := s.each(ctx, s.next, before, func(e listener.Event) {
		taken.add(e)
		events++
	})
	if err != nil {
		return err
	}
	gaps := taken.gaps(time.Now())
	s.log.Error("events lost to retention: the sink was too far behind", "from", s.next, "to", before-1, "events", events, "runs", len(gaps))
	s.gone.Add(uint64(events))
	s.gaps, s.unkept = append(s.gaps, gaps...), append(s.unkept, gaps...)
	s.next, s.noted = before, before
	return nil
}

// note stores what the sink has in hand of the events before a sequence, without the
// payloads, and lets go of what it is done with since: the cursor may stay for long
// behind an event that fails.
func (s *spool) note(ctx context.Context, before uint64) error {
	cursor, _, err := s.journal.State().Cursor(s.sink)
	if err != nil {
		return err
	}
	blobs := map[uint64][]byte{}
	if from := max(s.noted, cursor); from < before {
		err := s.each(ctx, from, before, func(e listener.Event) {
			if s.settled(e.Sequence) {
				return // others of it wait, this one does not
			}
			e.Payload = nil
			blobs[e.Sequence] = encodeShelved(e)
		})
		if err != nil {
			return err
		}
	}
	done := func(sequence uint64) bool { return sequence < cursor || s.settled(sequence) }
	if err := s.replace(journal.ShelfReading, done, blobs); err != nil {
		return err
	}
	s.noted = max(s.noted, before)
	return nil
}

// tidy lets go of what was delivered, so that the next bridge does not name it as lost.
func (s *spool) tidy(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.note(ctx, 0)
}

// each calls fn with the events of a range that the sink wants and the journal has.
func (s *spool) each(ctx context.Context, from, to uint64, fn func(listener.Event)) (err error) {
	first, _ := s.journal.Bounds()
	source, closeSource, err := (&replays{journal: s.journal}).Open(max(from, first), to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	for piece := source.(*strip); piece.next < piece.to; {
		list, err := piece.Next(ctx, 512, 4<<20)
		if err != nil {
			return err
		}
		for _, e := range list {
			if s.match.Wants(&e) {
				fn(e)
			}
		}
	}
	return nil
}

// admitLosses makes gap events of what the last process had in hand when retention took
// it, and did not deliver.
func (s *spool) admitLosses() error {
	events, err := s.shelved(journal.ShelfReading, 0)
	if err != nil || len(events) == 0 {
		return err
	}
	var taken losses
	lost, sequences := 0, make([]uint64, len(events))
	for i, e := range events {
		if sequences[i] = e.Sequence; e.Sequence >= s.next { // the others were delivered
			taken.add(e)
			lost++
		}
	}
	gaps := taken.gaps(time.Now())
	if err := s.keep(gaps); err != nil {
		return err
	}
	if err := s.journal.State().Change(journal.ShelfReading, s.sink, nil, sequences...); err != nil {
		return err
	}
	if lost > 0 {
		s.log.Error("events lost to retention: they were not delivered when the bridge ended",
			"from", s.next, "to", sequences[len(sequences)-1], "events", lost, "runs", len(gaps))
	}
	s.gone.Add(uint64(lost))
	return nil
}

// shelved are the events on a shelf from a sequence on.
func (s *spool) shelved(shelf journal.Shelf, from uint64) (events []listener.Event, err error) {
	err = s.journal.State().Each(shelf, s.sink, from, func(sequence uint64, blob []byte) error {
		e, err := decodeShelved(sequence, blob)
		events = append(events, e)
		return err
	})
	return events, err
}

// keep stores gap events, and lets go of those that were delivered.
func (s *spool) keep(gaps []listener.Event) error {
	cursor, _, err := s.journal.State().Cursor(s.sink)
	if err != nil {
		return err
	}
	blobs := make(map[uint64][]byte, len(gaps))
	for _, e := range gaps {
		blobs[e.Sequence] = encodeShelved(e)
	}
	return s.replace(journal.ShelfLosses, func(sequence uint64) bool { return sequence < cursor }, blobs)
}

// replace puts events on a shelf, and takes away those that are done with.
func (s *spool) replace(shelf journal.Shelf, done func(sequence uint64) bool, blobs map[uint64][]byte) error {
	var old []uint64
	err := s.journal.State().Each(shelf, s.sink, 0, func(sequence uint64, _ []byte) error {
		if done(sequence) {
			old = append(old, sequence)
		}
		return nil
	})
	if err != nil || len(old)+len(blobs) == 0 {
		return err
	}
	return s.journal.State().Change(shelf, s.sink, blobs, old...)
}

// encodeShelved is the time of an event and its record.
func encodeShelved(e listener.Event) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(e.Recorded.UnixNano())), listener.EncodeRecord(e)...)
}

func decodeShelved(sequence uint64, blob []byte) (listener.Event, error) {
	if len(blob) < 8 {
		return listener.Event{}, fmt.Errorf("decode event of %d bytes: it is cut short", len(blob))
	}
	return listener.DecodeRecord(sequence, time.Unix(0, int64(binary.BigEndian.Uint64(blob))).UTC(), blob[8:])
}
