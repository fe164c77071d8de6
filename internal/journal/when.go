package journal

import (
	"fmt"
	"os"
	"time"
)

// When returns when the record of a sequence was taken: of the oldest record, if that
// one was deleted, and the zero time for one that is not there yet.
func (j *Journal) When(sequence uint64) (time.Time, error) {
	j.mu.Lock()
	sequence = max(sequence, j.segments[0].head.first)
	if sequence >= j.next {
		j.mu.Unlock()
		return time.Time{}, nil
	}
	s := *j.find(sequence)
	j.mu.Unlock()

	f, err := j.frameOf(s, sequence)
	if err != nil {
		return time.Time{}, fmt.Errorf("find record %d in journal: %s: %w", sequence, s.path, err)
	}
	return unixTime(f.time), nil
}

func (j *Journal) frameOf(s segment, sequence uint64) (frame, error) {
	file, err := os.Open(s.path)
	if err != nil {
		return frame{}, err
	}
	defer file.Close() //nolint:errcheck // only read from
	offset, err := j.seek(file, s, sequence)
	if err != nil {
		return frame{}, err
	}
	return j.codec.headAt(&window{src: file, end: s.size, chunk: frameHead}, offset, sequence)
}
