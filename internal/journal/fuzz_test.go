package journal

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

const fuzzJournal = 7

// fuzzSegment returns a small segment of the journal fuzzJournal.
func fuzzSegment() []byte {
	c := newCodec(fuzzJournal)
	b := header{version: formatVersion, journal: fuzzJournal, first: 1}.encode()
	sequence := uint64(1)
	for count := range uint32(4) {
		for i := range count {
			f := frame{index: i, count: count, sequence: sequence, time: int64(sequence)}
			b = c.append(b, f, bytes.Repeat([]byte{'b'}, int(10*i)))
			sequence++
		}
	}
	return b
}

// FuzzScan: whatever a segment holds, what counts as good is a prefix of whole
// groups, and is found again when the rest is cut.
func FuzzScan(f *testing.F) {
	whole := fuzzSegment()
	f.Add(whole[segmentHead:])
	f.Add(whole[segmentHead : len(whole)-5])
	f.Add(append(bytes.Clone(whole[segmentHead:]), make([]byte, 100)...))
	f.Add(bytes.Repeat([]byte(frameMarker), 40))
	f.Fuzz(func(t *testing.T, frames []byte) {
		b := append(bytes.Clone(whole[:segmentHead]), frames...)
		c := newCodec(fuzzJournal)
		scan := func(b []byte) (extent, *flaw) {
			w := &window{src: bytes.NewReader(b), end: int64(len(b)), chunk: 64}
			var x index
			good, bad, err := c.scan(w, 1, &x)
			if err != nil {
				t.Fatal(err)
			}
			if bad != nil {
				if bad.offset < good.end || bad.offset > int64(len(b)) {
					t.Fatalf("good up to %d, flaw at %d", good.end, bad.offset)
				}
				if _, err := c.laterGroup(w, bad.offset, good.next); err != nil {
					t.Fatal(err)
				}
			} else if good.end != int64(len(b)) {
				t.Fatalf("no flaw, and good up to %d of %d", good.end, len(b))
			}
			return good, bad
		}
		good, _ := scan(b)
		if again, bad := scan(b[:good.end]); again != good || bad != nil {
			t.Fatalf("cut to what is good: %+v, %v, before %+v", again, bad, good)
		}
	})
}

// FuzzOpen: whatever is in the directory, it is refused or it works.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	if err := createState(realDisk(), dir, fuzzJournal); err != nil {
		f.Fatal(err)
	}
	state, err := os.ReadFile(filepath.Join(dir, stateName))
	if err != nil {
		f.Fatal(err)
	}
	golden, err := os.ReadFile(filepath.Join(goldenDir, stateName))
	if err != nil {
		f.Fatal(err)
	}
	segment := fuzzSegment()
	f.Add(segment, state)
	f.Add(segment[:len(segment)-1], state)
	f.Add(segment[:segmentHead-1], state)
	f.Add(segment, golden)
	f.Add(segment, state[:5000])
	f.Add([]byte(segmentMagic), []byte{})
	f.Fuzz(func(t *testing.T, segment, state []byte) {
		dir := quickDir(t)
		for name, b := range map[string][]byte{filepath.Base(segmentPath(dir, 1)): segment, stateName: state} {
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, verr := Verify(dir)
		j, err := Open(dir, Options{SegmentBytes: 300})
		if (err == nil) != (verr == nil) {
			t.Fatalf("Open: %v, Verify: %v", err, verr)
		}
		if err != nil {
			return
		}
		defer die(t, j)
		_, next := j.Bounds()
		if _, err := readAll(context.Background(), j); err != nil {
			t.Fatalf("read what has just been scanned: %v", err)
		}
		if first, err := j.Append(context.Background(), []byte("new")); first != next || err != nil {
			t.Fatalf("Append: %d, %v, want %d", first, err, next)
		}
	})
}
