package journal

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

func TestStateOverReopening(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	s := j.State()
	if _, ok, err := s.Cursor("a"); ok || err != nil {
		t.Errorf("Cursor of a new sink: %v, %v", ok, err)
	}
	if _, ok, err := s.Resume("a"); ok || err != nil {
		t.Errorf("Resume of a new source: %v, %v", ok, err)
	}
	if _, _, ok, err := s.Marks("a"); ok || err != nil {
		t.Errorf("Marks of a new source: %v, %v", ok, err)
	}
	mustAppend(t, j, "1", "2", "3")
	big := bytes.Repeat([]byte("marks"), 100_000)
	for _, err := range []error{
		s.SaveCursors(map[string]uint64{"a": 1, "b": 4}),
		s.SaveCursors(map[string]uint64{"a": 2}),
		s.SaveCursors(nil),
		s.SaveResume("etl", []byte("old")),
		s.SaveResume("etl", []byte(`{"op":1}`)),
		s.SaveResume("empty", nil),
		s.SaveMarks("etl", 3, big),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		s = j.State()
		for sink, want := range map[string]uint64{"a": 2, "b": 4} {
			if got, ok, err := s.Cursor(sink); got != want || !ok || err != nil {
				t.Errorf("Cursor(%s) = %d, %v, %v, want %d", sink, got, ok, err, want)
			}
		}
		if got, ok, err := s.Resume("etl"); string(got) != `{"op":1}` || !ok || err != nil {
			t.Errorf("Resume = %q, %v, %v", got, ok, err)
		}
		if got, ok, err := s.Resume("empty"); len(got) != 0 || !ok || err != nil {
			t.Errorf("Resume of an empty blob = %q, %v, %v", got, ok, err)
		}
		if covered, got, ok, err := s.Marks("etl"); covered != 3 || !bytes.Equal(got, big) || !ok || err != nil {
			t.Errorf("Marks = %d, %d bytes, %v, %v", covered, len(got), ok, err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = mustOpen(t, dir, Options{})
	}
}

func TestStateNeverLeadsTheLog(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{})
	mustAppend(t, j, "1")
	s := j.State()
	if err := s.SaveCursors(map[string]uint64{"a": 3}); !errors.Is(err, ErrBeyondEnd) {
		t.Errorf("SaveCursors beyond the end: %v", err)
	}
	if err := s.SaveMarks("a", 3, nil); !errors.Is(err, ErrBeyondEnd) {
		t.Errorf("SaveMarks beyond the end: %v", err)
	}
	if _, ok, err := s.Cursor("a"); ok || err != nil {
		t.Errorf("a refused cursor is there: %v, %v", ok, err)
	}
}

// twoJournals makes two journals of which the first is longer.
func twoJournals(t *testing.T) (a, b string) {
	t.Helper()
	a, b = t.TempDir(), t.TempDir()
	for dir, bodies := range map[string][]string{a: {"1", "2", "3"}, b: {"1"}} {
		j := mustOpen(t, dir, Options{})
		mustAppend(t, j, bodies...)
		if err := j.State().SaveCursors(map[string]uint64{"sink": uint64(len(bodies) + 1)}); err != nil {
			t.Fatal(err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

func copyFile(t testing.TB, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestStateAndSegmentsBelongTogether(t *testing.T) {
	cases := map[string]func(t *testing.T, a, b string) (dir string){
		"state of another journal": func(t *testing.T, a, b string) string {
			copyFile(t, filepath.Join(b, stateName), filepath.Join(a, stateName))
			return a
		},
		"state is gone": func(t *testing.T, a, _ string) string {
			if err := os.Remove(filepath.Join(a, stateName)); err != nil {
				t.Fatal(err)
			}
			return a
		},
		"segments are gone": func(t *testing.T, a, _ string) string {
			if err := os.Remove(segmentPath(a, 1)); err != nil {
				t.Fatal(err)
			}
			return a
		},
		"last group is gone": func(t *testing.T, a, _ string) string {
			if err := os.Truncate(segmentPath(a, 1), segmentHead); err != nil {
				t.Fatal(err)
			}
			return a
		},
		"older segments, restored": func(t *testing.T, a, _ string) string {
			old := filepath.Join(t.TempDir(), "old")
			copyFile(t, segmentPath(a, 1), old)
			j := mustOpen(t, a, Options{})
			mustAppend(t, j, "4")
			if err := j.State().SaveCursors(map[string]uint64{"sink": 5}); err != nil {
				t.Fatal(err)
			}
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			copyFile(t, old, segmentPath(a, 1))
			return a
		},
	}
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			a, b := twoJournals(t)
			dir := spoil(t, a, b)
			for range 2 { // also the second time: a refusal changes nothing
				_, err := Open(dir, Options{})
				if !errors.Is(err, ErrMismatch) {
					t.Fatalf("Open: %v, want ErrMismatch", err)
				}
			}
			if _, err := Verify(dir); !errors.Is(err, ErrMismatch) {
				t.Errorf("Verify: %v, want ErrMismatch", err)
			}
		})
	}
}

// A byte of the state that is not what it was is noticed, or was not in use: it
// must never be read as another value.
func TestEveryFlipOfTheState(t *testing.T) {
	a, _ := twoJournals(t)
	path := filepath.Join(a, stateName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	step := 7
	if testing.Short() {
		step = 61
	}
	refused := 0
	for i := 0; i < len(whole); i += step {
		b := bytes.Clone(whole)
		b[i] ^= 1 << (i % 8)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		db, facts, err := openState(a)
		if err != nil {
			refused++
			continue
		}
		s := State{db: db, end: func() uint64 { return 4 }}
		// bbolt falls back to the transaction before if its newest meta page is bad.
		if next, ok, err := s.Cursor("sink"); facts.end > 4 || err == nil && ok && next != 4 {
			t.Fatalf("flip at %d: cursor %d, %v, end %d", i, next, ok, facts.end)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if refused == 0 {
		t.Error("no flip was noticed")
	}
	for size := 0; size < len(whole); size += 1000 {
		if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		var damage *DamageError
		db, _, err := openState(a)
		if err == nil {
			// The end of the file may be a free page, and bbolt grows it again.
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		} else if !errors.As(err, &damage) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut to %d: %v, want a DamageError", size, err)
		}
	}
}
