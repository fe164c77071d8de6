package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Retain deletes the oldest segments while the log is larger than MaxBytes, and
// those whose last record is older than MaxAge. It deletes a segment only if all
// of its records are below floor (up to which the marks of every source are
// saved), and never the last. Readers need not be stopped: one that stands in a
// deleted segment is told by a RetiredError.
//
// After an error the segments that could not be removed are out of the log all
// the same; the next Retain removes them.
func (j *Journal) Retain(floor uint64) error {
	j.retaining.Lock()
	defer j.retaining.Unlock()
	gone, err := j.retire(floor)
	if err != nil {
		return err
	}
	j.doomed = append(j.doomed, gone...)
	// The oldest first, each one durably: a crash must not leave a hole.
	for len(j.doomed) > 0 {
		if err := j.disk.remove(j.doomed[0].path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove segment: %w", err)
		}
		if err := j.disk.syncDir(j.dir); err != nil {
			return fmt.Errorf("remove segment %s: %w", j.doomed[0].path, err)
		}
		j.doomed = j.doomed[1:]
	}
	return nil
}

// retire takes out of the log what has to go, and returns it.
func (j *Journal) retire(floor uint64) ([]*segment, error) {
	now := j.o.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil, fmt.Errorf("retain journal: %w", ErrClosed)
	}
	n := j.excessive(floor, now)
	gone := j.segments[:n:n]
	j.segments = append([]*segment{}, j.segments[n:]...)
	return gone, nil
}

// Turned receives when a new segment has begun, so that retention may find something
// to delete; once for all that began since it last received. It is for one receiver.
func (j *Journal) Turned() <-chan struct{} { return j.turned }

// Retiring returns the sequence of the first record that Retain with the same floor
// would leave, if it were called now.
func (j *Journal) Retiring(floor uint64) uint64 {
	now := j.o.Now()
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.segments[j.excessive(floor, now)].head.first
}

// excessive is how many segments have to go. The caller holds mu.
func (j *Journal) excessive(floor uint64, now time.Time) (n int) {
	var total int64
	for _, s := range j.segments {
		total += s.size
	}
	for n < len(j.segments)-1 && j.segments[n].next <= floor && j.excess(j.segments[n], total, now) {
		total -= j.segments[n].size
		n++
	}
	return n
}

func (j *Journal) excess(s *segment, total int64, now time.Time) bool {
	return j.o.MaxBytes > 0 && total > j.o.MaxBytes ||
		j.o.MaxAge > 0 && now.Sub(unixTime(s.time)) > j.o.MaxAge
}

func unixTime(ns int64) time.Time { return time.Unix(0, ns).UTC() }
