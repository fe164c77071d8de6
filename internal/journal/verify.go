package journal

import (
	"errors"
	"fmt"
	"os"
)

// Report says what Verify has found in a journal.
type Report struct {
	Segments    int
	First, Next uint64 // as Bounds
	Bytes       int64  // of all segments, without what Torn counts
	Torn        int64  // bytes of an unfinished write at the end, which Open will cut
}

// Verify reads every record and all of the state of a journal that nobody has
// open, and changes nothing. The error joins a *DamageError for each damaged
// segment; ErrLocked, ErrMismatch and *VersionError are as from Open. Where there is no
// journal it is ErrNone.
func Verify(dir string) (Report, error) {
	if err := findDir(dir); err != nil {
		return Report{}, err
	}
	unlock, err := lockToLook(dir)
	if err != nil {
		return Report{}, err
	}
	defer unlock()
	s, err := examine(dir, toLook)
	if err != nil {
		return Report{}, err
	} else if len(s.segments) == 0 { // its creation was interrupted
		return Report{First: 1, Next: 1}, s.db.Close()
	}
	n := len(s.segments)
	report := Report{Segments: n, First: s.segments[0].head.first, Next: s.segments[n-1].next, Torn: s.tornBytes}
	var errs []error
	for i, seg := range s.segments {
		report.Bytes += seg.size
		if i < n-1 { // examine has read the last
			errs = append(errs, newCodec(s.facts.journal).verify(seg))
		}
	}
	return report, errors.Join(append(errs, s.db.Close())...)
}

// VerifyLog reads every record of a journal that somebody may have open, and changes
// nothing. It leaves out the state, and what a write that is under way has not finished.
func VerifyLog(dir string) (report Report, err error) {
	view, err := Look(dir)
	if err != nil {
		return report, err
	}
	report.First, report.Next = view.Bounds()
	report.Segments, report.Bytes = view.Size()
	return report, view.EachLeft(report.First, func(Record) error { return nil }, func(*RetiredError) {})
}

// verify reads all of a sealed segment.
func (c codec) verify(s *segment) error {
	f, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	good, bad, err := c.scan(&window{src: f, end: s.size, chunk: scanChunk}, s.head.first, &s.index)
	switch {
	case err != nil:
		return err
	case bad != nil:
		return &DamageError{s.path, bad.offset, bad.reason}
	case good.next != s.next:
		return &DamageError{s.path, good.end, fmt.Sprintf("the segment ends before record %d, and the next one begins with record %d", good.next, s.next)}
	}
	return nil
}
