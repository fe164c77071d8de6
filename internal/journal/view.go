package journal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

// View is the log of a directory as it was at one moment, for reading. It changes
// nothing, and keeps no lock, so a Journal may have the directory open meanwhile.
type View struct {
	segments []*segment
	torn     int64
	damage   error
}

// Look returns a view of the log in a directory, as far as it can be read: Damage tells
// what is wrong behind that. What a write that is under way has not finished is not part
// of it. The error is ErrNone where there is no journal.
func Look(dir string) (*View, error) {
	if err := findDir(dir); err != nil {
		return nil, err
	}
	const tries = 3 // the log may get a new segment, or lose one, in between
	for try := 1; ; try++ {
		v, err := look(dir)
		changing := errors.Is(err, fs.ErrNotExist) || errors.As(err, new(*DamageError)) || err == nil && v.damage != nil
		if !changing || try == tries {
			return v, err
		}
	}
}

// findDir returns ErrNone if there is no such directory.
func findDir(dir string) error {
	_, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w in %s, which does not exist", ErrNone, dir)
	}
	if err != nil {
		return fmt.Errorf("look at journal: %w", err)
	}
	return nil
}

func look(dir string) (*View, error) {
	facts, known, unread := peek(dir) // before the log, which only grows
	list, cut := listSegments(dir)
	if cut != nil && (len(list) == 0 || !errors.As(cut, new(*DamageError))) {
		return nil, cut
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w in %s", ErrNone, dir)
	}
	tail := list[len(list)-1]
	s := survey{segments: list, facts: stateFacts{journal: tail.head.journal}}
	if known {
		if unfit := facts.fit(tail); unfit == nil {
			s.facts = facts
		} else {
			unread = unfit
		}
	}
	bad := s.measure(tail)
	if bad != nil && !errors.As(bad, new(*DamageError)) {
		return nil, bad
	}
	v := &View{segments: list, torn: s.tornBytes, damage: cmp.Or(bad, cut, unread)}
	if v.damage == nil {
		v.damage = s.reached(dir, tail.next)
	}
	return v, nil
}

// peek reads what the state says about the log, which is not known where somebody has it
// open, or it is missing.
func peek(dir string) (facts stateFacts, known bool, err error) {
	unlock, err := lockToLook(dir)
	if errors.Is(err, ErrLocked) {
		return facts, false, nil
	} else if err != nil {
		return facts, false, err
	}
	defer unlock()
	db, facts, err := openState(dir, toLook)
	if errors.Is(err, fs.ErrNotExist) {
		return facts, false, nil
	} else if err != nil {
		return facts, false, err
	}
	return facts, true, db.Close()
}

// Damage returns why the log cannot be trusted to be whole behind the view's last
// record: a *DamageError, a *VersionError or ErrMismatch, as from Open; nil if nothing
// shows. Records before that may be damaged too, which only reading them tells.
func (v *View) Damage() error { return v.damage }

// Torn returns how many bytes of a write stand behind the last record that was never
// acknowledged, or is under way.
func (v *View) Torn() int64 { return v.torn }

// Bounds returns the sequence of the oldest record, and the one that the next record
// will get.
func (v *View) Bounds() (first, next uint64) {
	return v.segments[0].head.first, v.segments[len(v.segments)-1].next
}

// Size returns how many segments there are, and their bytes.
func (v *View) Size() (segments int, bytes int64) {
	for _, s := range v.segments {
		bytes += s.size
	}
	return len(v.segments), bytes
}

// Newest is when the newest record was taken, zero for a log that never had one.
func (v *View) Newest() time.Time {
	if at := v.segments[len(v.segments)-1].time; at != 0 {
		return unixTime(at)
	}
	return time.Time{}
}

// Each calls fn with the records from a sequence on, in order, until fn returns an
// error, which it returns. Where a record is damaged it ends with a *DamageError, and
// behind the last one with what Damage tells; a segment that retention has deleted since
// Look is a *RetiredError. The body belongs to fn.
func (v *View) Each(from uint64, fn func(Record) error) error {
	for _, s := range v.segments {
		if s.next <= from {
			continue
		}
		err := v.eachOf(s, from, fn)
		if errors.Is(err, fs.ErrNotExist) {
			return &RetiredError{From: max(from, s.head.first), To: s.next - 1}
		}
		if err != nil {
			return err
		}
	}
	return v.damage
}

// EachLeft is Each, but goes on behind what retention has deleted since Look, after it
// has told gone of it.
func (v *View) EachLeft(from uint64, fn func(Record) error, gone func(*RetiredError)) error {
	for {
		err := v.Each(from, fn)
		var retired *RetiredError
		if !errors.As(err, &retired) {
			return err
		}
		gone(retired)
		from = retired.To + 1
	}
}

func (v *View) eachOf(s *segment, from uint64, fn func(Record) error) error {
	file, err := os.Open(s.path)
	if err != nil {
		return fmt.Errorf("read journal: %w", err)
	}
	defer file.Close() //nolint:errcheck // only read from
	c := newCodec(s.head.journal)
	w := &window{src: file, end: s.size, chunk: readChunk, keep: true}
	for sequence, off := s.head.first, int64(segmentHead); sequence < s.next; sequence++ {
		f, body, err := c.frameAt(w, off, sequence)
		var bad *flaw
		if errors.As(err, &bad) {
			return &DamageError{s.path, bad.offset, bad.reason}
		}
		if err != nil {
			return err
		}
		off += f.size()
		if sequence < from {
			continue
		}
		if err := fn(Record{Sequence: sequence, Time: unixTime(f.time), Body: body}); err != nil {
			return err
		}
	}
	return nil
}

// Kept is what the state of a journal says of its sinks.
type Kept struct {
	Cursors map[string]uint64
	Letters map[string]int // how many dead letters a sink has
}

// Inspect reads the state of a journal that nobody has open, and changes nothing.
// ErrLocked, ErrMismatch and *VersionError are as from Open.
func Inspect(dir string) (kept Kept, err error) {
	if err := findDir(dir); err != nil {
		return kept, err
	}
	unlock, err := lockToLook(dir)
	if err != nil {
		return kept, err
	}
	defer unlock()
	db, _, err := openState(dir, toLook)
	if errors.Is(err, fs.ErrNotExist) {
		return kept, stateless(dir)
	} else if err != nil {
		return kept, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return (&State{db: db}).Kept()
}

// Kept returns what the state says of its sinks.
func (s *State) Kept() (kept Kept, err error) {
	if kept.Cursors, err = s.Cursors(); err != nil {
		return kept, err
	}
	kept.Letters = map[string]int{}
	for sink := range kept.Cursors {
		n := 0
		if err := s.Each(ShelfLetters, sink, 0, func(uint64, []byte) error { n++; return nil }); err != nil {
			return kept, err
		}
		kept.Letters[sink] = n
	}
	return kept, nil
}
