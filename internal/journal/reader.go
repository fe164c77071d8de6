package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	readChunk   = 256 << 10 // bytes that are read at a time
	readRecords = 256       // records that room is made for at once
)

// Reader reads the log in order, beside Append, Retain and other readers. One
// goroutine uses it.
type Reader struct {
	j      *Journal
	next   uint64
	closed bool

	file  *os.File
	first uint64 // of the segment that file is
	until uint64 // sequence after the last record that w shows
	off   int64  // of next in it
	w     window
}

// NewReader returns a reader whose first record has the sequence next. Beyond
// the end of the log the error is ErrBeyondEnd: nothing of that sequence has
// been acknowledged, so who names it has another log in mind. A record that
// retention has deleted is no error here; Next will tell.
func (j *Journal) NewReader(next uint64) (*Reader, error) {
	_, end := j.Bounds()
	switch {
	case next == 0:
		return nil, errors.New("open reader: sequences begin at 1, not 0")
	case next > end:
		return nil, fmt.Errorf("open reader: %w: %d, and the log ends at %d", ErrBeyondEnd, next, end)
	}
	return &Reader{j: j, next: next}, nil
}

// Next blocks until there is a record, then returns what is there, at least one
// record, at most maxRecords, and not more than maxBytes of bodies unless the
// first alone is larger.
//
// A *RetiredError comes once when retention has deleted where the reader stands;
// the next call goes on at the first record that is kept. A *DamageError comes
// each time: the reader does not skip what it cannot read. When ctx ends Next
// returns its error, and ErrClosed after Close of the reader or the journal; the
// reader loses nothing by an error.
func (r *Reader) Next(ctx context.Context, maxRecords, maxBytes int) ([]Record, error) {
	if err := r.stand(ctx); err != nil {
		return nil, err
	}
	return r.take(maxRecords, maxBytes)
}

// Close lets go of the file. It returns nil.
func (r *Reader) Close() error {
	r.closed = true
	r.leave()
	return nil
}

// stand waits until the record at next exists, and opens its segment.
func (r *Reader) stand(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		view, wait, err := r.look()
		if err != nil {
			return err
		}
		if wait == nil {
			err := r.enter(view)
			if errors.Is(err, fs.ErrNotExist) && r.retired() {
				continue
			}
			return err
		}
		select {
		case <-ctx.Done():
		case <-wait:
		}
	}
}

// look returns a copy of the segment that holds next, or the channel that is
// closed when the log has changed.
func (r *Reader) look() (view segment, wait <-chan struct{}, err error) {
	j := r.j
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed || r.closed {
		return view, nil, fmt.Errorf("read journal: %w", ErrClosed)
	}
	if first := j.segments[0].head.first; r.next < first {
		err := &RetiredError{From: r.next, To: first - 1}
		r.leave()
		r.next = first
		return view, nil, err
	}
	if r.next < j.next {
		return *j.find(r.next), nil, nil
	}
	if j.grown == nil {
		j.grown = make(chan struct{})
	}
	return view, j.grown, nil
}

func (r *Reader) retired() bool {
	first, _ := r.j.Bounds()
	return r.next < first
}

// enter makes the window show what is durable of the segment.
func (r *Reader) enter(s segment) error {
	if r.file == nil || r.first != s.head.first {
		r.leave()
		f, err := os.Open(s.path)
		if err != nil {
			return fmt.Errorf("read journal: %w", err)
		}
		r.file, r.first = f, s.head.first
		r.w = window{src: f, end: s.size, chunk: readChunk, keep: true}
		if r.off, err = r.j.seek(f, s, r.next); err != nil {
			r.leave()
			return r.explain(s.path, err)
		}
	}
	r.w.end, r.until = s.size, s.next
	return nil
}

func (r *Reader) leave() {
	if r.file != nil {
		_ = r.file.Close() // only read from
		r.file, r.w = nil, window{}
	}
}

// take reads records from the window.
func (r *Reader) take(maxRecords, maxBytes int) (list []Record, err error) {
	list = make([]Record, 0, min(max(maxRecords, 1), int(min(r.until-r.next, readRecords))))
	bytes := 0
	for r.next < r.until && (len(list) == 0 || len(list) < maxRecords) {
		f, body, err := r.j.codec.frameAt(&r.w, r.off, r.next)
		if err != nil && len(list) > 0 {
			return list, nil // what is good first
		} else if err != nil {
			return nil, r.explain(segmentPath(r.j.dir, r.first), err)
		}
		if bytes += len(body); bytes > maxBytes && len(list) > 0 {
			break
		}
		list = append(list, Record{Sequence: f.sequence, Time: unixTime(f.time), Body: body})
		r.next, r.off = r.next+1, r.off+f.size()
	}
	return list, nil
}

// explain makes damage of a flaw: everything that a reader sees was
// acknowledged.
func (r *Reader) explain(path string, err error) error {
	var bad *flaw
	if errors.As(err, &bad) {
		return &DamageError{path, bad.offset, bad.reason}
	}
	return fmt.Errorf("read journal: %s: %w", filepath.Base(path), err)
}

// seek finds the offset of a sequence in the segment, by its index and then from
// frame to frame.
func (j *Journal) seek(file *os.File, s segment, sequence uint64) (int64, error) {
	w := &window{src: file, end: s.size, chunk: readChunk}
	at := s.index.before(sequence, s.head.first)
	for at.sequence < sequence {
		f, err := j.codec.headAt(w, at.offset, at.sequence)
		if err != nil {
			return 0, err
		}
		at = mark{at.sequence + 1, at.offset + f.size()}
	}
	return at.offset, nil
}
