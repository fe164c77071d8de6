// Package journal is the durable log between Spark and the sinks. What Append
// has returned for is on the disk, in order, without holes, and stays readable
// by sequence until retention deletes it; whatever happens to the process.
//
// A directory holds segments (append-only files of checksummed frames, see
// docs/decisions/0001-journal-format.md), and beside them a small transactional
// State: cursors, resume points, marks. One Journal at a time has it open.
//
// Damage is never repaired or skipped silently: what was acknowledged and cannot
// be read is a DamageError. Only the rest of a write that never finished, at the
// very end of the log, is cut when the journal is opened.
package journal

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Record is one entry of the log.
type Record struct {
	// Sequence numbers the records of a journal from 1, without holes.
	Sequence uint64
	// Time is when the journal took the record, in UTC. It never goes backwards
	// within the log, even if the clock does.
	Time time.Time
	// Body is what was appended. It belongs to the receiver.
	Body []byte
}

// Journal is an open log. Its methods may be called from any goroutine.
type Journal struct {
	dir   string
	o     Options
	disk  disk
	lock  *os.File
	state *State
	codec codec
	id    uint64

	queue queue
	// pen is held by the one Append that writes, on behalf of all that wait. The
	// fields of pencil belong to it.
	pen chan struct{}
	pencil

	mu       sync.Mutex
	segments []*segment // never empty; the last is the tail
	next     uint64     // sequence after the last durable record
	grown    chan struct{}
	turned   chan struct{}
	closed   bool
	writing  condition
	oldest   moment // of the first record, known once it was asked for

	retaining sync.Mutex
	doomed    []*segment // out of the log, files not yet removed; guarded by retaining

	closing  sync.Once
	closeErr error
}

// Open opens the journal in dir, and creates it (mode 0700) if there is none.
//
// It returns ErrLocked if the directory is in use, a *DamageError or ErrMismatch
// if acknowledged records or state are lost, and a *VersionError for a format
// that this program does not know; then nothing in the directory was changed.
// The sealed segments are checked by size only, their records when they are
// read.
func Open(dir string, o Options) (*Journal, error) {
	return open(dir, o, realDisk().disturbed(o.Disturb))
}

func open(dir string, o Options, d disk) (_ *Journal, err error) {
	if err := d.makeDir(dir); err != nil {
		return nil, fmt.Errorf("create journal directory %s (journal.dir must name a directory that this user may write to): %w", dir, err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	j := &Journal{dir: dir, o: o.withDefaults(), disk: d, lock: lock, pen: make(chan struct{}, 1), turned: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, j.release())
		}
	}()
	if err := j.load(); err != nil {
		return nil, err
	}
	return j, nil
}

// load reads what is in the directory, or makes it.
func (j *Journal) load() error {
	if err := removeTemps(j.dir); err != nil {
		return err
	}
	s, err := examine(j.dir, toWrite)
	if errors.Is(err, ErrNone) {
		if s, err = j.create(); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	if err := addShelves(s.db); err != nil {
		return errors.Join(fmt.Errorf("prepare state: %w", err), s.db.Close())
	}
	j.state = &State{db: s.db, end: func() uint64 { _, next := j.Bounds(); return next }, disturb: j.o.Disturb}
	j.id, j.codec = s.facts.journal, newCodec(s.facts.journal)
	if len(s.segments) == 0 {
		return j.begin()
	}
	return j.resume(s)
}

// begin makes the first segment of a journal.
func (j *Journal) begin() error {
	s, f, err := j.disk.createSegment(j.dir, header{version: formatVersion, journal: j.id, first: 1})
	if err != nil {
		return err
	}
	j.segments, j.next = []*segment{s}, 1
	j.file, j.tail = f, s
	return nil
}

// resume goes on behind the last good record: it cuts what never was
// acknowledged, and makes durable what may have been written but not synced.
func (j *Journal) resume(s survey) (err error) {
	tail := s.segments[len(s.segments)-1]
	if j.file, err = j.disk.open(tail.path, os.O_RDWR); err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	if s.torn != nil {
		if err := j.file.Truncate(tail.size); err != nil {
			return fmt.Errorf("cut unfinished write: %w", err)
		}
		j.o.Log.Warn("cut an unfinished write from the end of the journal",
			"file", tail.path, "offset", tail.size, "bytes", s.tornBytes, "reason", s.torn.reason)
	}
	if err := j.file.Sync(); err != nil {
		return fmt.Errorf("sync segment: %w", err)
	}
	j.segments, j.next, j.tail = s.segments, tail.next, tail
	return nil
}

// Bounds returns the sequence of the oldest record that is kept, and the one
// that the next record will get. They are equal in an empty log.
func (j *Journal) Bounds() (first, next uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.segments[0].head.first, j.next
}

// State returns the small state beside the log. It is usable until Close.
func (j *Journal) State() *State { return j.state }

// Close ends the journal: Appends that have not begun to write and readers that
// wait get ErrClosed. It notes the log's end in the state, so that damage to it
// is recognised for certain.
func (j *Journal) Close() error {
	j.closing.Do(func() {
		j.queue.close()
		j.pen <- struct{}{} // waits for the one that writes, and keeps the pen
		j.mu.Lock()
		j.closed = true
		j.wake()
		j.mu.Unlock()
		j.retaining.Lock() // a Retain that has begun is waited for
		defer j.retaining.Unlock()
		err := j.state.update("save end of the log", func(*bolt.Tx) error { return nil })
		j.closeErr = errors.Join(err, j.release())
	})
	return j.closeErr
}

// release closes what load has opened so far; the lock last.
func (j *Journal) release() error {
	var errs []error
	if j.state != nil {
		errs = append(errs, j.state.db.Close())
	}
	if j.file != nil {
		errs = append(errs, j.file.Close())
	}
	return errors.Join(append(errs, j.lock.Close())...)
}

// wake lets waiting readers look again. The caller holds mu.
func (j *Journal) wake() {
	if j.grown != nil {
		close(j.grown)
		j.grown = nil
	}
}

// find returns the segment that holds a sequence of the log. The caller holds
// mu.
func (j *Journal) find(sequence uint64) *segment {
	i, found := slices.BinarySearchFunc(j.segments, sequence, func(s *segment, n uint64) int {
		return cmp.Compare(s.head.first, n)
	})
	if !found {
		i--
	}
	return j.segments[i]
}
