package journal

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

const scanChunk = 1 << 20

// window reads a file in chunks and hands out slices of them.
type window struct {
	src   io.ReaderAt
	end   int64 // nothing is read from here on
	chunk int   // bytes that are read at a time, at least
	keep  bool  // slices outlive the next read: every chunk gets its own memory

	buf []byte
	at  int64 // offset of buf in the file
}

// slice returns n bytes at off.
func (w *window) slice(off int64, n int) ([]byte, error) {
	if off < w.at || off+int64(n) > w.at+int64(len(w.buf)) {
		if err := w.fill(off, n); err != nil {
			return nil, err
		}
	}
	i := int(off - w.at)
	return w.buf[i : i+n : i+n], nil
}

func (w *window) fill(off int64, n int) error {
	if off+int64(n) > w.end {
		return io.ErrUnexpectedEOF
	}
	size := int(min(int64(max(n, w.chunk)), w.end-off))
	if w.keep || cap(w.buf) < size {
		w.buf = make([]byte, size)
	}
	w.buf, w.at = w.buf[:size], off
	if got, err := w.src.ReadAt(w.buf, off); got < size {
		w.buf = w.buf[:0]
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

// flaw is something in a segment that should not be there. Whether it is damage
// or the rest of a write that never finished depends on what follows it.
type flaw struct {
	offset int64
	reason string
}

func (f *flaw) Error() string { return fmt.Sprintf("at offset %d: %s", f.offset, f.reason) }

// frameAt reads and checks the frame at off, which must have the given
// sequence. It returns a *flaw for what is not such a frame, any other error for
// a file that cannot be read.
func (c codec) frameAt(w *window, off int64, sequence uint64) (frame, []byte, error) {
	f, err := c.headAt(w, off, sequence)
	if err != nil {
		return f, nil, err
	}
	b, err := w.slice(off, int(f.size()))
	if err != nil {
		return f, nil, flawOf(off, "file ends inside the body", err)
	}
	body := b[frameHead:]
	if crc32.Checksum(body, castagnoli) != f.bodyCRC {
		return f, nil, &flaw{off, fmt.Sprintf("checksum of the body of record %d does not match", sequence)}
	}
	return f, body, nil
}

// headAt is frameAt without the body.
func (c codec) headAt(w *window, off int64, sequence uint64) (frame, error) {
	b, err := w.slice(off, frameHead)
	if err != nil {
		return frame{}, flawOf(off, "file ends inside the head of a frame", err)
	}
	f, ok := c.decode(b)
	switch {
	case !ok:
		return f, &flaw{off, fmt.Sprintf("checksum of the head of record %d does not match", sequence)}
	case f.sequence != sequence:
		return f, &flaw{off, fmt.Sprintf("record %d stands where record %d should be", f.sequence, sequence)}
	}
	return f, nil
}

func flawOf(off int64, reason string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return &flaw{off, reason}
	}
	return fmt.Errorf("read segment: %w", err)
}

// extent is how far a segment is good: up to the end of its last whole group.
type extent struct {
	next uint64 // sequence after the last good record
	end  int64  // offset after it
	time int64  // its time, 0 where there is none
}

// scan checks every frame from the segment's beginning to the end of w. It ends
// at the first flaw, and returns how far everything was good.
func (c codec) scan(w *window, first uint64, x *index) (good extent, bad *flaw, err error) {
	good = extent{next: first, end: segmentHead}
	off, sequence, count := good.end, first, uint32(0)
	for off < w.end {
		f, _, err := c.frameAt(w, off, sequence)
		if errors.As(err, &bad) {
			return good, bad, nil
		} else if err != nil {
			return good, nil, err
		}
		if f.groupFirst() != good.next || f.index > 0 && f.count != count {
			return good, &flaw{off, fmt.Sprintf("record %d does not belong to the group it stands in", sequence)}, nil
		}
		off, sequence, count = off+f.size(), sequence+1, f.count
		if f.index+1 == f.count {
			x.add(good.next, good.end)
			good = extent{sequence, off, f.time}
		}
	}
	if off != good.end {
		return good, &flaw{off, "file ends inside a group"}, nil
	}
	return good, nil, nil
}

// laterGroup looks behind a flaw for the head of a frame whose group begins
// after sequence. A group is written only after the one before it is on the
// disk, so a later one proves that what is flawed had been acknowledged. Frames
// of the flawed group itself prove nothing: the blocks of one write reach the
// disk in any order.
func (c codec) laterGroup(w *window, from int64, sequence uint64) (bool, error) {
	for from+frameHead <= w.end {
		b, err := w.slice(from, int(min(scanChunk, w.end-from)))
		if err != nil {
			return false, fmt.Errorf("read segment: %w", err)
		}
		if c.hasLater(b, sequence) {
			return true, nil
		}
		from += int64(len(b) - frameHead + 1) // a head may begin in this chunk and end in the next
	}
	return false, nil
}

func (c codec) hasLater(b []byte, sequence uint64) bool {
	for len(b) >= frameHead {
		i := bytes.Index(b[:len(b)-frameHead+len(frameMarker)], []byte(frameMarker))
		if i < 0 {
			return false
		}
		if f, ok := c.decode(b[i : i+frameHead]); ok && f.groupFirst() > sequence {
			return true
		}
		b = b[i+1:]
	}
	return false
}
