package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func appendSome(t *testing.T, j *Journal, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		if _, err := j.Append(t.Context(), fmt.Appendf(nil, "record %d", n)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLookBesideAnOpenJournal(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, Options{SegmentBytes: 400})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if v, err := Look(dir); err != nil || !v.Newest().IsZero() {
		t.Errorf("an empty log: %v, %v", v, err)
	}
	appendSome(t, j, 1, 30)
	v, err := Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	appendSome(t, j, 31, 32)
	first, next := v.Bounds()
	segments, bytes := v.Size()
	if first != 1 || next != 31 || segments < 3 || bytes < 30*40 || v.Newest().IsZero() {
		t.Errorf("bounds %d, %d, %d segments, %d bytes", first, next, segments, bytes)
	}
	want := uint64(7)
	err = v.Each(7, func(r Record) error {
		if r.Sequence != want || string(r.Body) != fmt.Sprint("record ", want) || r.Time.IsZero() {
			return fmt.Errorf("record %d at %v: %s", r.Sequence, r.Time, r.Body)
		}
		want++
		return nil
	})
	if err != nil || want != 31 {
		t.Errorf("read up to %d: %v", want, err)
	}
	stop := errors.New("enough")
	if err := v.Each(1, func(Record) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped with %v", err)
	}
	if _, err := Inspect(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("inspect of an open journal: %v", err)
	}
}

// A write that is under way is no damage, and what is damaged is.
func TestLookAtTornAndDamagedLogs(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, Options{SegmentBytes: 400})
	if err != nil {
		t.Fatal(err)
	}
	appendSome(t, j, 1, 30)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	tail := j.tail.path
	b, err := os.ReadFile(tail)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(tail, append(b, b[segmentHead:segmentHead+20]...), 0o600); err != nil {
		t.Fatal(err)
	}
	v, err := Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, next := v.Bounds(); next != 31 || v.Torn() != 20 || v.Damage() != nil {
		t.Errorf("next %d, want 31; %d bytes are torn, want 20; %v", next, v.Torn(), v.Damage())
	}
	oldest := segmentPath(dir, 1)
	if b, err = os.ReadFile(oldest); err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(oldest, b, 0o600); err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := v.Each(1, func(Record) error { n++; return nil }); !errors.As(err, new(*DamageError)) || n == 0 {
		t.Errorf("%d records, then %v", n, err)
	}
	if err := os.Remove(oldest); err != nil {
		t.Fatal(err)
	}
	if err := v.Each(1, func(Record) error { return nil }); !errors.As(err, new(*RetiredError)) {
		t.Errorf("a segment that is gone: %v", err)
	}
	if _, err := Look(filepath.Join(dir, "none")); !errors.Is(err, ErrNone) {
		t.Errorf("no folder: %v", err)
	}
}

func TestInspectTellsOfSinks(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	appendSome(t, j, 1, 3)
	s := j.State()
	err = errors.Join(s.SaveCursors(map[string]uint64{"a": 2, "b": 4}), s.Change(ShelfLetters, "a", map[uint64][]byte{1: nil, 3: nil}), j.Close())
	if err != nil {
		t.Fatal(err)
	}
	kept, err := Inspect(dir)
	if err != nil || fmt.Sprint(kept) != "{map[a:2 b:4] map[a:2 b:0]}" {
		t.Errorf("kept %v, %v", kept, err)
	}
}

// What can be read is shown, whatever is wrong behind it.
func TestLookAsFarAsItGoes(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(dir string, tail *segment) error
		want  error
		seen  int
	}{
		"whole":               {func(string, *segment) error { return nil }, nil, 30},
		"state missing":       {func(dir string, _ *segment) error { return os.Remove(filepath.Join(dir, stateName)) }, nil, 30},
		"state damaged":       {func(dir string, _ *segment) error { return os.Truncate(filepath.Join(dir, stateName), 100) }, &DamageError{}, 30},
		"segment missing":     {func(dir string, tail *segment) error { return os.Remove(segmentPath(dir, tail.head.prevFirst)) }, &DamageError{}, 26},
		"head damaged":        {func(_ string, tail *segment) error { return os.Truncate(tail.path, 10) }, &DamageError{}, 28},
		"last one missing":    {func(_ string, tail *segment) error { return os.Remove(tail.path) }, ErrMismatch, 28},
		"its end missing":     {func(_ string, tail *segment) error { return os.Truncate(tail.path, segmentHead) }, ErrMismatch, 28},
		"half a record of it": {func(_ string, tail *segment) error { return os.Truncate(tail.path, tail.size-3) }, &DamageError{}, 29},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			j := mustOpen(t, dir, Options{SegmentBytes: 200})
			appendSome(t, j, 1, 30)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if err := c.spoil(dir, j.tail); err != nil {
				t.Fatal(err)
			}
			v, err := Look(dir)
			if err != nil {
				t.Fatal(err)
			}
			seen := 0
			err = v.Each(1, func(Record) error { seen++; return nil })
			if seen != c.seen || !errors.Is(err, v.Damage()) {
				t.Errorf("%d records were seen, want %d, then %v; damage %v", seen, c.seen, err, v.Damage())
			}
			if ok := errors.As(err, new(*DamageError)); ok != errors.As(c.want, new(*DamageError)) || !ok && !errors.Is(err, c.want) {
				t.Errorf("ends with %v, want %v", err, c.want)
			}
		})
	}
}

// Where no journal is, nothing is whole.
func TestNoJournal(t *testing.T) {
	empty := t.TempDir()
	for _, dir := range []string{empty, filepath.Join(empty, "none")} {
		_, looked := Look(dir)
		_, verified := Verify(dir)
		if !errors.Is(looked, ErrNone) || !errors.Is(verified, ErrNone) {
			t.Errorf("%s: %v, %v", dir, looked, verified)
		}
	}
	if entries, err := os.ReadDir(empty); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
