package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sort"
	"time"
)

// Stats is what a journal holds and how it is, as it was at one moment.
type Stats struct {
	// First is the sequence of the oldest record that is kept, Next the one that the
	// next record will get. They are equal in an empty log.
	First, Next uint64
	Segments    int
	Bytes       int64
	// Oldest is when the oldest record was taken, zero for an empty log.
	Oldest time.Time
	// Err is why the last write failed, nil while writes succeed; Failing is when the
	// first of the failures in a row began.
	Err     error
	Failing time.Time
}

// Stats returns what the journal holds. Oldest is zero also when it cannot be read.
func (j *Journal) Stats() Stats {
	j.mu.Lock()
	st := Stats{First: j.segments[0].head.first, Next: j.next, Segments: len(j.segments), Err: j.writing.err, Failing: j.writing.since}
	for _, s := range j.segments {
		st.Bytes += s.size
	}
	oldest, known := *j.segments[0], j.oldest
	j.mu.Unlock()

	if st.First == st.Next {
		return st
	}
	if known.sequence != st.First || known.at == 0 {
		known = moment{sequence: st.First}
		if f, err := j.firstFrame(oldest); err == nil {
			known.at = f.time
		}
		j.mu.Lock()
		j.oldest = known
		j.mu.Unlock()
	}
	if known.at != 0 {
		st.Oldest = unixTime(known.at)
	}
	return st
}

// moment is when a record was taken, in unix ns.
type moment struct {
	sequence uint64
	at       int64
}

// condition is how the last write to the log ended.
type condition struct {
	err   error
	since time.Time
}

// write writes a group and remembers how that ended.
func (j *Journal) write(calls []*call) error {
	began := time.Now()
	err := j.writeGroup(calls)
	if j.o.Written != nil {
		j.o.Written(time.Since(began), err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case err == nil:
		j.writing = condition{}
	case j.writing.err == nil:
		j.writing = condition{err, began}
	default:
		j.writing.err = err
	}
	return err
}

// Since returns the sequence of the first record that was taken at t or later; the
// one that the next record will get if there is none.
func (j *Journal) Since(t time.Time) (uint64, error) {
	for {
		sequence, in, err := j.since(t.UnixNano())
		if first, _ := j.Bounds(); errors.Is(err, fs.ErrNotExist) && in < first {
			continue // retention took the segment away between the two looks
		}
		return sequence, err
	}
}

// since also returns the first sequence of the segment that it looked into.
func (j *Journal) since(ns int64) (sequence, in uint64, err error) {
	j.mu.Lock()
	next := j.next
	i := sort.Search(len(j.segments), func(i int) bool { return j.segments[i].time >= ns })
	if i == len(j.segments) || j.segments[i].empty() {
		j.mu.Unlock()
		return next, next, nil
	}
	view := *j.segments[i]
	j.mu.Unlock()
	sequence, err = j.findTime(view, ns)
	return sequence, view.head.first, err
}

// findTime goes from frame to frame of a segment, whose last record is not before ns.
func (j *Journal) findTime(s segment, ns int64) (uint64, error) {
	file, err := os.Open(s.path)
	if err != nil {
		return 0, fmt.Errorf("find time in journal: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read from
	w := &window{src: file, end: s.size, chunk: readChunk}
	at := mark{s.head.first, segmentHead}
	for {
		f, err := j.codec.headAt(w, at.offset, at.sequence)
		if err != nil {
			return 0, fmt.Errorf("find time in journal: %s: %w", s.path, err)
		}
		if f.time >= ns || at.sequence+1 >= s.next {
			return at.sequence, nil
		}
		at = mark{at.sequence + 1, at.offset + f.size()}
	}
}

func (j *Journal) firstFrame(s segment) (frame, error) {
	file, err := os.Open(s.path)
	if err != nil {
		return frame{}, fmt.Errorf("read journal: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read from
	return j.codec.headAt(&window{src: file, end: s.size, chunk: frameHead}, segmentHead, s.head.first)
}
