package journal

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"
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

// A sink whose cursor has vanished would be taken for a new one.
func TestAVanishedCursorIsNoticed(t *testing.T) {
	a, _ := twoJournals(t)
	db, err := openBolt(filepath.Join(a, stateName))
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error { return tx.Bucket(bucketCursors).Delete([]byte("sink")) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	var damage *DamageError
	if _, err := Open(a, Options{}); !errors.As(err, &damage) {
		t.Errorf("Open: %v, want a DamageError", err)
	}
}

// A byte of the state that is not what it was is noticed, or was not in use: it
// must never be read as another value, or as none.
func TestEveryFlipOfTheState(t *testing.T) {
	a, _ := twoJournals(t)
	j := mustOpen(t, a, Options{})
	for i := range 40 { // enough for branch pages and overflowing ones
		if err := j.State().SaveMarks(fmt.Sprint("source", i), 4, bytes.Repeat([]byte{byte(i)}, 50*(i%7)*(i%11))); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(a, stateName))
	if err != nil {
		t.Fatal(err)
	}
	flips := 6000
	if testing.Short() {
		flips = 600
	}
	dir := quickDir(t)
	rnd := rand.New(rand.NewPCG(3, 4))
	refused := 0
	for n := range flips {
		b := bytes.Clone(whole)
		i := rnd.IntN(len(b))
		if n%2 == 0 { // more of them where the structure is
			i = i/4096*4096 + rnd.IntN(200)
		}
		b[i] ^= byte(1 + rnd.IntN(255))
		if ok := stateIsRight(t, dir, b); !ok {
			refused++
		}
	}
	if refused < flips/10 {
		t.Errorf("%d of %d flips were noticed", refused, flips)
	}
	for size := 0; size < len(whole); size += 1000 {
		stateIsRight(t, dir, whole[:size])
	}
}

// stateIsRight reports whether a state is accepted, and fails the test if it then
// says something else than what was saved.
func stateIsRight(t *testing.T, dir string, b []byte) bool {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, stateName), b, 0o600); err != nil {
		t.Fatal(err)
	}
	db, facts, err := openState(dir, toWrite)
	if err != nil {
		var damage *DamageError
		var version *VersionError
		if !errors.As(err, &damage) && !errors.As(err, &version) {
			t.Fatalf("%v, want a DamageError", err)
		}
		return false
	}
	defer db.Close()
	s := State{db: db, end: func() uint64 { return 4 }}
	if next, ok, err := s.Cursor("sink"); next != 4 || !ok || err != nil || facts.end != 4 {
		t.Fatalf("cursor %d, %v, %v, end %d", next, ok, err, facts.end)
	}
	for i := range 39 { // where the newest meta page is bad, bbolt has the state before
		covered, blob, ok, err := s.Marks(fmt.Sprint("source", i))
		if covered != 4 || len(blob) != 50*(i%7)*(i%11) || !ok || err != nil {
			t.Fatalf("marks of source%d: %d, %d bytes, %v, %v", i, covered, len(blob), ok, err)
		}
	}
	return true
}
