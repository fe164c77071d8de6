package journal

import (
	"encoding/binary"
	"errors"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// State is the small, transactional part of the journal: where each sink stands,
// where each source goes on, and what admission knows of each source. Every
// write is durable on return, and all of it or nothing. Methods may be called
// beside each other and beside the journal's.
type State struct {
	db *bolt.DB
	// end returns the sequence after the last durable record. It is noted with
	// every write: a log that is later found to end before it has lost records.
	end func() uint64
	// disturb is Options.Disturb.
	disturb func(Step) error
}

var (
	bucketMeta    = []byte("meta")
	bucketCursors = []byte("cursors")
	bucketResume  = []byte("resume")
	bucketMarks   = []byte("marks")

	keyVersion = []byte("version")
	keyJournal = []byte("journal")
	keyEnd     = []byte("end")
	keyTotal   = []byte("total") // of the checksums of all other values
)

// SaveCursors notes for each sink the sequence that it needs next. A cursor
// beyond the end of the log is ErrBeyondEnd, and nothing is saved.
func (s *State) SaveCursors(next map[string]uint64) error {
	if len(next) == 0 {
		return nil
	}
	return s.update("save cursors", func(tx *bolt.Tx) error {
		for sink, n := range next {
			if err := s.within(n); err != nil {
				return fmt.Errorf("sink %s: %w", sink, err)
			}
			if err := put(tx, bucketCursors, sink, number(n)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Cursor returns the sequence that a sink needs next; ok is false for a sink
// that has no cursor yet.
func (s *State) Cursor(sink string) (next uint64, ok bool, err error) {
	b, err := s.get("read cursor", bucketCursors, sink)
	if b == nil || err != nil {
		return 0, false, err
	}
	if len(b) != 8 {
		return 0, false, s.damage(bucketCursors, sink, "cursor is not a number")
	}
	return binary.BigEndian.Uint64(b), true, nil
}

// SaveResume notes where a source goes on after a restart. The blob is the
// caller's own; it replaces the one before.
func (s *State) SaveResume(source string, blob []byte) error {
	return s.update("save resume point", func(tx *bolt.Tx) error {
		return put(tx, bucketResume, source, blob)
	})
}

// Resume returns what SaveResume noted last.
func (s *State) Resume(source string) (blob []byte, ok bool, err error) {
	b, err := s.get("read resume point", bucketResume, source)
	return b, b != nil, err
}

// SaveMarks notes what admission knows of a source after all records with a
// sequence below covered. Retention may then delete those records. covered
// beyond the end of the log is ErrBeyondEnd.
func (s *State) SaveMarks(source string, covered uint64, blob []byte) error {
	return s.update("save marks", func(tx *bolt.Tx) error {
		if err := s.within(covered); err != nil {
			return fmt.Errorf("source %s: %w", source, err)
		}
		return put(tx, bucketMarks, source, append(number(covered), blob...))
	})
}

// Marks returns what SaveMarks noted last.
func (s *State) Marks(source string) (covered uint64, blob []byte, ok bool, err error) {
	b, err := s.get("read marks", bucketMarks, source)
	if b == nil || err != nil {
		return 0, nil, false, err
	}
	if len(b) < 8 {
		return 0, nil, false, s.damage(bucketMarks, source, "marks are cut short")
	}
	return binary.BigEndian.Uint64(b), b[8:], true, nil
}

func (s *State) within(n uint64) error {
	if end := s.end(); n > end {
		return fmt.Errorf("%w: %d, and the log ends at %d", ErrBeyondEnd, n, end)
	}
	return nil
}

// update runs fn in a transaction that also notes the end of the log.
func (s *State) update(what string, fn func(*bolt.Tx) error) error {
	err := s.db.Update(func(tx *bolt.Tx) error {
		if s.disturb != nil {
			if err := s.disturb(StepState); err != nil {
				return err
			}
		}
		if err := fn(tx); err != nil {
			return err
		}
		return put(tx, bucketMeta, string(keyEnd), number(s.end()))
	})
	return s.wrap(what, err)
}

// get returns a copy of a value, nil where there is none.
func (s *State) get(what string, bucket []byte, key string) (value []byte, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket).Get([]byte(key))
		if b == nil {
			return nil
		}
		v, ok := unseal(bucket, []byte(key), b)
		if !ok {
			return s.damage(bucket, key, "checksum does not match")
		}
		value = append([]byte{}, v...)
		return nil
	})
	return value, s.wrap(what, err)
}

func (s *State) wrap(what string, err error) error {
	if errors.Is(err, bolt.ErrDatabaseNotOpen) { //nolint:staticcheck // the same value as in its errors package
		err = ErrClosed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (s *State) damage(bucket []byte, key, reason string) error {
	return &DamageError{s.db.Path(), -1, fmt.Sprintf("%s of %s: %s", bucket, key, reason)}
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
