package journal

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

// After a clean Close everything is known to be acknowledged: no spoilt byte, and
// no missing one, goes unnoticed.
func TestNothingGoesUnnoticedAfterClose(t *testing.T) {
	s := makeSpecimen(t)
	for name, change := range map[string]func([]byte, int) []byte{"flip": flip, "cut": cutAt, "zero": zeroFrom} {
		t.Run(name, func(t *testing.T) {
			spoil(t, s.dir, change, func(path string, _ bool, i int) {
				if i%4 == 0 {
					s.compare(t, s.dir)
				}
				n, err := s.open(t, s.dir)
				if err == nil {
					t.Fatalf("%s at %d of %s: opened, and %d records of %d read", name, i, path, n, len(s.bodies))
				}
				var damage *DamageError
				var version *VersionError
				switch {
				case errors.As(err, &damage):
					if damage.File != path || damage.Offset < 0 {
						t.Fatalf("%s at %d of %s: %v: another place", name, i, path, err)
					}
				case errors.As(err, &version) && name == "flip" && i >= 8 && i < 12:
				case errors.Is(err, ErrMismatch) && name == "cut":
				default:
					t.Fatalf("%s at %d of %s: %v", name, i, path, err)
				}
				if i%16 == 0 {
					if _, err := Verify(s.dir); err == nil {
						t.Fatalf("%s at %d of %s: Verify has not noticed", name, i, path)
					}
				}
			})
			if n, err := s.open(t, s.dir); n != len(s.bodies) || err != nil {
				t.Fatalf("the restored specimen: %d, %v", n, err)
			}
		})
	}
}

// After a crash only the very last group may be missing, and only as a whole.
func TestAfterACrashOnlyTheLastGroupIsCut(t *testing.T) {
	s := makeSpecimen(t)
	lastGroup := s.groups[len(s.groups)-2]
	for name, change := range map[string]func([]byte, int) []byte{"flip": flip, "cut": cutAt, "zero": zeroFrom} {
		t.Run(name, func(t *testing.T) {
			shortened := 0
			spoil(t, s.stale, change, func(path string, tail bool, i int) {
				if i%4 == 0 {
					s.compare(t, s.stale)
				}
				n, err := s.open(t, s.stale)
				if err != nil {
					return // noticed
				}
				shortened++
				switch {
				case !tail:
					t.Fatalf("%s at %d of %s: not noticed", name, i, path)
				case name == "flip" && n != lastGroup:
					t.Fatalf("flip at %d of %s: %d records are left, want %d or damage", i, path, n, lastGroup)
				case !slices.Contains(s.groups[1:], n) || n < s.known:
					t.Fatalf("%s at %d of %s: %d records are left, want whole groups %v", name, i, path, n, s.groups)
				}
			})
			if shortened == 0 {
				t.Error("an unfinished write was never cut")
			}
		})
	}
}

// Open alone notices a segment that is lost, shortened or longer than it was,
// without reading it.
func TestOpenChecksTheChainOfSegments(t *testing.T) {
	dir := t.TempDir()
	j, _ := tenSegments(t, dir, Options{}, &faults{}) // all of one size
	die(t, j)
	path := segmentPath(dir, 5)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"lost": nil, "shortened": whole[:len(whole)-1], "longer": append(whole, 0)} {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if b != nil {
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var damage *DamageError
		if _, err := Open(dir, Options{}); !errors.As(err, &damage) {
			t.Errorf("a segment that is %s: %v, want a DamageError", name, err)
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(segmentPath(dir, 1)); err != nil {
		t.Fatal(err)
	}
	if got := first(mustOpen(t, dir, Options{})); got != 2 {
		t.Errorf("without its oldest segment the log begins at %d, want 2", got)
	}
}

// scatter returns what a power cut may leave of a write: some blocks, in any
// order, and zeros for the others.
func scatter(rnd *rand.Rand, written []byte) (left []byte, all bool) {
	const block = 16 // smaller than any disk's, so that frames are torn often
	left = make([]byte, len(written))
	for i := 0; i < len(written); i += block {
		if rnd.IntN(4) > 0 {
			copy(left[i:min(i+block, len(written))], written[i:])
		}
	}
	if rnd.IntN(3) == 0 {
		left = left[:rnd.IntN(len(left)+1)]
	}
	return left, bytes.Equal(left, written)
}

// The blocks of an unfinished group reach the disk in any order: whole frames
// may stand behind a hole. That is no damage. The same bytes are damage once
// another group stands behind them, since that one was written later.
func TestAPowerCutIsNotDamage(t *testing.T) {
	dir := quickDir(t)
	j := mustOpen(t, dir, Options{})
	mustAppend(t, j, "kept 1", "kept 2")
	before := j.tail.size
	mustAppend(t, j, "a", strings.Repeat("b", 30), strings.Repeat("c", 10), "", strings.Repeat("d", 50))
	after := j.tail.size
	mustAppend(t, j, "later")
	die(t, j)
	path := segmentPath(dir, 1)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	group := whole[before:after]

	rnd := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		left, all := scatter(rnd, group)
		if err := os.WriteFile(path, append(whole[:before:before], left...), 0o600); err != nil {
			t.Fatal(err)
		}
		j, err := Open(dir, Options{})
		if err != nil {
			t.Fatalf("a power cut is taken for damage: %v", err)
		}
		want := uint64(3)
		if all {
			want = 8
		}
		if got := mustAppend(t, j, "new"); got != want {
			t.Fatalf("the log goes on at %d, want %d", got, want)
		}
		die(t, j)
		if all || len(left) < len(group) {
			continue
		}
		if err := os.WriteFile(path, slices.Concat(whole[:before], left, whole[after:]), 0o600); err != nil {
			t.Fatal(err)
		}
		var damage *DamageError
		if j, err := Open(dir, Options{}); !errors.As(err, &damage) || damage.File != path || damage.Offset < before || damage.Offset >= after {
			t.Fatalf("damage is taken for a power cut: %v, %v", j, err)
		}
	}
}

// What a failed write has left may come back behind a shorter one after a power
// cut. Its frames fit by their sequences, but not by their group.
func TestTwoWritesOfOnePlace(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	mustAppend(t, j, "kept")
	at := j.tail.size
	die(t, j)
	f := frame{sequence: 2, count: 2}
	b := j.codec.append(nil, f, []byte("second write"))
	for i := range uint32(2) { // records 3 and 4 of a group of three that began at 2
		f = frame{sequence: 3 + uint64(i), index: 1 + i, count: 3}
		b = j.codec.append(b, f, []byte("first write"))
	}
	whole, err := os.ReadFile(segmentPath(dir, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segmentPath(dir, 1), append(whole[:at], b...), 0o600); err != nil {
		t.Fatal(err)
	}
	j = mustOpen(t, dir, Options{})
	if _, next := j.Bounds(); next != 2 {
		t.Errorf("next is %d, want 2: neither write was finished", next)
	}
}

// A body that holds the bytes of a segment, from this place or from another
// journal, is only a body.
func TestAJournalInsideAJournal(t *testing.T) {
	other := makeSpecimen(t)
	b, err := os.ReadFile(segmentFiles(t, other.dir)[1])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	mustAppend(t, j, "kept")
	at := j.tail.size
	mustAppend(t, j, string(b))
	die(t, j)
	path := segmentPath(dir, 1)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole[at] ^= 1
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	j, err = Open(dir, Options{})
	if err != nil {
		t.Fatalf("frames inside a torn body are taken for later groups: %v", err)
	}
	defer die(t, j)
	if _, next := j.Bounds(); next != 2 {
		t.Errorf("next is %d, want 2", next)
	}
}

func TestUnknownVersions(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	mustAppend(t, j, "x")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	path := segmentPath(dir, 1)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	later := header{version: formatVersion + 1, journal: j.id, first: 1}.encode()
	if err := os.WriteFile(path, append(later, whole[segmentHead:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	var version *VersionError
	if _, err := Open(dir, Options{}); !errors.As(err, &version) || version.File != path || version.Found != formatVersion+1 {
		t.Errorf("segment of a later version: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b[segmentHead:], whole[segmentHead:]) {
		t.Errorf("the refused segment was changed: %v", err)
	}
}

// Damage that comes while the journal is open is found by whoever reads it.
func TestDamageWhileReading(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	mustAppend(t, j, "a", "b")
	at := j.tail.size
	mustAppend(t, j, "c")
	path := segmentPath(dir, 1)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte("X"), at+frameHead); err != nil {
		t.Fatal(err)
	}
	r := mustReader(t, j, 1)
	if list, err := r.Next(t.Context(), 10, 100); len(list) != 2 || err != nil {
		t.Fatalf("Next: %v, %v, want the two that are good", list, err)
	}
	for range 2 {
		var damage *DamageError
		if _, err := r.Next(t.Context(), 10, 100); !errors.As(err, &damage) || damage.File != path || damage.Offset != at {
			t.Fatalf("Next: %v, want damage at %d", err, at)
		}
	}
	if _, err := f.WriteAt([]byte("c"), at+frameHead); err != nil {
		t.Fatal(err)
	}
}
