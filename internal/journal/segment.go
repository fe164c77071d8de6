package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	segmentSuffix = ".seg"
	tempSuffix    = ".tmp"
	indexStep     = 256 << 10
)

// segment is one file of the log. Only the last one, the tail, changes; its
// fields are guarded by Journal.mu.
type segment struct {
	path  string
	head  header
	next  uint64 // sequence after the last durable record
	size  int64  // bytes up to there
	time  int64  // time of that record, or of the last one before the segment
	index index
}

func (s *segment) empty() bool { return s.next == s.head.first }

func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", first, segmentSuffix))
}

// index holds where some of a segment's groups begin, in order, about every
// indexStep bytes.
type index []mark

type mark struct {
	sequence uint64
	offset   int64
}

func (x *index) add(sequence uint64, offset int64) {
	last := int64(segmentHead)
	if n := len(*x); n > 0 {
		last = (*x)[n-1].offset
	}
	if offset-last >= indexStep {
		*x = append(*x, mark{sequence, offset})
	}
}

// before returns the last known place at or before sequence, given the
// segment's first.
func (x index) before(sequence, first uint64) mark {
	i, found := slices.BinarySearchFunc(x, sequence, func(m mark, s uint64) int {
		return cmp.Compare(m.sequence, s)
	})
	if found {
		return x[i]
	} else if i > 0 {
		return x[i-1]
	}
	return mark{first, segmentHead}
}

// createSegment makes an empty segment. It gets its name only when its header is
// durable, so a segment never has half a header.
func (d disk) createSegment(dir string, h header) (*segment, appender, error) {
	s := &segment{path: segmentPath(dir, h.first), head: h, next: h.first, size: segmentHead, time: h.prevTime}
	temp := s.path + tempSuffix
	f, err := d.open(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, nil, fmt.Errorf("create segment: %w", err)
	}
	if err := d.settleSegment(f, temp, s.path, h); err != nil {
		err = errors.Join(fmt.Errorf("create segment %s: %w", s.path, err), f.Close())
		_ = d.remove(temp) // room for others; Open removes what stays
		return nil, nil, err
	}
	return s, f, nil
}

func (d disk) settleSegment(f appender, temp, path string, h header) error {
	if _, err := f.WriteAt(h.encode(), 0); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := d.rename(temp, path); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

// listSegments returns the segments of a directory in their order, checked as
// far as their headers and sizes go. The extent of the last is not known yet.
// With an error it returns those before what is wrong.
func listSegments(dir string) ([]*segment, error) {
	entries, err := os.ReadDir(dir) // sorted, and names have one length
	if err != nil {
		return nil, fmt.Errorf("list segments: %w", err)
	}
	var list []*segment
	for _, e := range entries {
		first, ok := parseSegmentName(e.Name())
		if !ok {
			continue
		}
		s, err := readSegment(filepath.Join(dir, e.Name()), first)
		if err != nil {
			return list, err
		}
		if n := len(list); n > 0 {
			if err := linkSegments(list[n-1], s); err != nil {
				return list, err
			}
		}
		list = append(list, s)
	}
	return list, nil
}

func parseSegmentName(name string) (first uint64, ok bool) {
	digits, ok := strings.CutSuffix(name, segmentSuffix)
	if !ok || len(digits) != 20 {
		return 0, false
	}
	first, err := strconv.ParseUint(digits, 10, 64)
	return first, err == nil
}

// readSegment reads the header of a segment, and the size of its file.
func readSegment(path string, first uint64) (*segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("stat segment: %w", err)
	}
	b := make([]byte, segmentHead)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read segment: %w", err)
	}
	h, bad := decodeHeader(b[:n])
	switch {
	case bad != "":
		return nil, &DamageError{path, 0, bad}
	case h.version != formatVersion:
		return nil, &VersionError{path, h.version, formatVersion}
	case h.first != first || first == 0:
		return nil, &DamageError{path, 0, fmt.Sprintf("the file is named for record %d and begins with record %d", first, h.first)}
	}
	return &segment{path: path, head: h, next: first, size: info.Size(), time: h.prevTime}, nil
}

// linkSegments checks that s follows prev, and completes prev from what s says
// about it.
func linkSegments(prev, s *segment) error {
	switch {
	case s.head.journal != prev.head.journal:
		return &DamageError{s.path, 0, "the segment belongs to another journal"}
	case s.head.prevFirst != prev.head.first:
		return &DamageError{s.path, 0, fmt.Sprintf("the segment before it, of record %d, is missing", s.head.prevFirst)}
	case s.head.prevSize != prev.size:
		return &DamageError{prev.path, min(prev.size, s.head.prevSize), fmt.Sprintf("the file has %d bytes, and had %d when it was finished", prev.size, s.head.prevSize)}
	}
	prev.next, prev.time = s.head.first, s.head.prevTime
	return nil
}

// removeTemps removes what an interrupted creation left. Files of others that
// may lie in the directory are not touched.
func removeTemps(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list left-over files: %w", err)
	}
	for _, e := range entries {
		name, temp := strings.CutSuffix(e.Name(), tempSuffix)
		if _, ours := parseSegmentName(name); !temp || !ours && name != stateName {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
			return fmt.Errorf("remove left-over file: %w", err)
		}
	}
	return nil
}
