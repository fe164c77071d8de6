package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// specimen is a small journal of several segments, and what is known about it.
type specimen struct {
	dir    string   // after a clean Close
	stale  string   // the same segments, with the state of a time before the last two groups
	bodies []string // of all records
	// groups holds how many records there are after each group of the tail, with
	// those before the tail as its first.
	groups []int
	known  int // how many the stale state knows of
}

// makeSpecimen is made once per test; groups are of one to four records.
func makeSpecimen(t testing.TB) specimen {
	t.Helper()
	s := specimen{dir: quickDir(t), stale: quickDir(t)}
	j := mustOpen(t, s.dir, Options{SegmentBytes: 460})
	const calls = 9
	for call := range calls {
		var bodies []string
		for i := range 1 + call%4 {
			bodies = append(bodies, fmt.Sprintf("%d/%d%s", call, i, strings.Repeat("~", 5*i)))
		}
		before := len(j.segments)
		mustAppend(t, j, bodies...)
		if before != len(j.segments) || call == 0 {
			s.groups = []int{len(s.bodies)}
		}
		s.bodies = append(s.bodies, bodies...)
		s.groups = append(s.groups, len(s.bodies))
		if call == calls-3 {
			if err := j.State().SaveCursors(map[string]uint64{"a": 2}); err != nil {
				t.Fatal(err)
			}
			s.known = len(s.bodies)
			copyFile(t, filepath.Join(s.dir, stateName), filepath.Join(s.stale, stateName))
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	for _, path := range segmentFiles(t, s.dir) {
		copyFile(t, path, filepath.Join(s.stale, filepath.Base(path)))
	}
	if len(j.segments) < 3 || len(s.groups) < 3 {
		t.Fatalf("specimen has %d segments, %d groups in the last", len(j.segments), len(s.groups)-1)
	}
	return s
}

// open opens a spoilt journal and reads it. Without an error the records are
// a beginning of the specimen's, and how many is returned.
func (s specimen) open(t *testing.T, dir string) (n int, _ error) {
	t.Helper()
	j, err := Open(dir, Options{})
	if err != nil {
		return 0, err
	}
	defer die(t, j)
	list, err := readAll(t.Context(), j)
	got := bodiesOf(t, list, 1)
	if len(got) > len(s.bodies) || !slices.Equal(got, s.bodies[:len(got)]) {
		t.Fatalf("read %q", got)
	}
	if _, next := j.Bounds(); err == nil && next != uint64(len(got)+1) {
		t.Fatalf("next is %d after %d records", next, len(got))
	}
	return len(got), err
}

// compare checks that who looks at a spoilt journal finds what who opens it does, and
// sees all records before that.
func (s specimen) compare(t *testing.T, dir string) {
	t.Helper()
	seen := 0
	v, looked := Look(dir)
	if looked == nil {
		looked = v.Each(1, func(r Record) error {
			if seen++; seen > len(s.bodies) || string(r.Body) != s.bodies[seen-1] || r.Sequence != uint64(seen) {
				t.Fatalf("record %d is %d, %q", seen, r.Sequence, r.Body)
			}
			return nil
		})
	}
	n, opened := s.open(t, dir)
	var a, b *DamageError
	same := errors.As(looked, &a) && errors.As(opened, &b) && a.File == b.File || fmt.Sprint(looked) == fmt.Sprint(opened)
	if !same || seen < n || opened == nil && seen != n {
		t.Fatalf("%d records are seen, then %v; opened are %d, then %v", seen, looked, n, opened)
	}
}

// spoil calls check for every version of every segment that change returns until
// it returns nil, and restores the files.
func spoil(t *testing.T, dir string, change func(whole []byte, i int) []byte, check func(path string, tail bool, i int)) {
	t.Helper()
	state, err := os.ReadFile(filepath.Join(dir, stateName))
	if err != nil {
		t.Fatal(err)
	}
	files := segmentFiles(t, dir)
	for k, path := range files {
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; ; i++ {
			b := change(whole, i)
			if b == nil {
				break
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			check(path, k == len(files)-1, i)
		}
		if err := errors.Join(os.WriteFile(path, whole, 0o600), os.WriteFile(filepath.Join(dir, stateName), state, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

func flip(whole []byte, i int) []byte {
	if i >= len(whole) {
		return nil
	}
	b := bytes.Clone(whole)
	b[i] ^= 1 << (i % 8)
	return b
}

func cutAt(whole []byte, i int) []byte {
	if i >= len(whole) {
		return nil
	}
	return whole[:i]
}

// zeroFrom is a file system that has kept the size but not the contents.
func zeroFrom(whole []byte, i int) []byte {
	if i >= len(whole) {
		return nil
	}
	return append(bytes.Clone(whole[:i]), make([]byte, len(whole)-i)...)
}
