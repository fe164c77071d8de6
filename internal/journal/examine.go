package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"

	bolt "go.etcd.io/bbolt"
)

// survey is what was found in a directory. The db is open.
type survey struct {
	db       *bolt.DB
	facts    stateFacts
	segments []*segment

	torn      *flaw // an unfinished write behind the tail's size, or nil
	tornBytes int64
}

// examine reads a directory without changing it (how says what its state is opened for), and checks that what is there
// belongs together.
func examine(dir string, how access) (s survey, err error) {
	if s.segments, err = listSegments(dir); err != nil {
		return s, err
	}
	s.db, s.facts, err = openState(dir, how)
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(s.segments) == 0:
		return s, fmt.Errorf("%w in %s", ErrNone, dir)
	case errors.Is(err, fs.ErrNotExist):
		return s, stateless(dir)
	case err != nil:
		return s, err
	}
	if err := s.check(dir); err != nil {
		return s, errors.Join(err, s.db.Close())
	}
	return s, nil
}

// check compares the state with the log, after finding the log's end.
func (s *survey) check(dir string) error {
	next := uint64(1) // of a journal whose creation was interrupted
	if n := len(s.segments); n > 0 {
		tail := s.segments[n-1]
		if err := s.facts.fit(tail); err != nil {
			return err
		}
		if err := s.measure(tail); err != nil {
			return err
		}
		next = tail.next
	}
	return s.reached(dir, next)
}

func stateless(dir string) error {
	return fmt.Errorf("%w: %s has segments but no %s", ErrMismatch, dir, stateName)
}

// fit checks that the state is of the same journal as a segment.
func (f stateFacts) fit(s *segment) error {
	if s.head.journal != f.journal {
		return fmt.Errorf("%w: %s was made for journal %016x and %s for journal %016x", ErrMismatch, stateName, f.journal, s.path, s.head.journal)
	}
	return nil
}

// reached checks that the log goes as far as the state knows that it went.
func (s *survey) reached(dir string, next uint64) error {
	end := "the log ends before record 1"
	if n := len(s.segments); n > 0 {
		tail := s.segments[n-1]
		end = fmt.Sprintf("the log ends before record %d (%s at offset %d)", next, tail.path, tail.size)
	}
	if s.facts.end > next {
		return fmt.Errorf("%w: in %s records up to %d were acknowledged, and %s", ErrMismatch, dir, s.facts.end-1, end)
	}
	if s.facts.furthest > next {
		return fmt.Errorf("%w: in %s the %s is at %d, and %s", ErrMismatch, dir, s.facts.namedBy, s.facts.furthest, end)
	}
	return nil
}

// measure finds the end of the tail by reading all of it, and tells what never
// was acknowledged from damage. The tail is what is good also where it is damaged.
func (s *survey) measure(tail *segment) error {
	f, err := os.Open(tail.path)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	c := newCodec(s.facts.journal)
	w := &window{src: f, end: tail.size, chunk: scanChunk}
	good, bad, err := c.scan(w, tail.head.first, &tail.index)
	if err != nil {
		return err
	}
	behind := tail.size - good.end
	tail.next, tail.size = good.next, good.end
	if good.time != 0 {
		tail.time = good.time
	}
	if bad != nil {
		acknowledged, err := c.laterGroup(w, bad.offset, good.next)
		if err != nil {
			return err
		}
		if acknowledged || s.facts.end > good.next {
			return &DamageError{tail.path, bad.offset, bad.reason}
		}
	}
	s.torn, s.tornBytes = bad, behind
	return nil
}

// create makes the state of a new journal; its segment follows.
func (j *Journal) create() (s survey, err error) {
	if err := createState(j.disk, j.dir, rand.Uint64()); err != nil {
		return s, err
	}
	return examine(j.dir, toWrite)
}
