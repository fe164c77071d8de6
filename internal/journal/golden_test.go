package journal

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden journal of this format version anew")

const goldenDir = "testdata/v1"

var goldenTime = time.Date(2024, 2, 29, 12, 0, 0, 1, time.UTC)

func goldenBodies() (calls [][]string) {
	for i := range 12 {
		call := []string{fmt.Sprintf(`{"n":%d}`, i)}
		if i%3 == 0 {
			call = append(call, "", strings.Repeat("ü", 10*i))
		}
		calls = append(calls, call)
	}
	return calls
}

func writeGolden(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(goldenDir); err != nil {
		t.Fatal(err)
	}
	at := goldenTime
	j := mustOpen(t, goldenDir, Options{SegmentBytes: 600, MaxBytes: 1300, Now: func() time.Time { return at }})
	for _, call := range goldenBodies() {
		mustAppend(t, j, call...)
		at = at.Add(time.Second)
	}
	if err := j.Retain(100); err != nil {
		t.Fatal(err)
	}
	s := j.State()
	for _, err := range []error{
		s.SaveCursors(map[string]uint64{"events": 15, "lake": 21}),
		s.SaveResume("etl", []byte(`{"operation":"x"}`)),
		s.SaveMarks("etl", 18, []byte(`{"runs":{}}`)),
		j.Close(),
		os.Remove(goldenDir + "/" + lockName),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// What a released version has written, every later one must read.
func TestGoldenJournal(t *testing.T) {
	if *update {
		writeGolden(t)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(goldenDir)); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(dir); err != nil || r.Segments < 2 || r.First == 1 || r.Next != 21 {
		t.Errorf("Verify: %+v, %v", r, err)
	}
	j := mustOpen(t, dir, Options{})
	list, err := readAll(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	var times []time.Time
	for i, call := range goldenBodies() {
		for _, body := range call {
			want, times = append(want, body), append(times, goldenTime.Add(time.Duration(i)*time.Second))
		}
	}
	first, _ := j.Bounds()
	if got := bodiesOf(t, list, first); !slices.Equal(got, want[first-1:]) {
		t.Errorf("read %q, want %q", got, want[first-1:])
	}
	for _, r := range list {
		if !r.Time.Equal(times[r.Sequence-1]) {
			t.Errorf("record %d at %v, want %v", r.Sequence, r.Time, times[r.Sequence-1])
		}
	}
	s := j.State()
	if next, ok, err := s.Cursor("events"); next != 15 || !ok || err != nil {
		t.Errorf("Cursor: %d, %v, %v", next, ok, err)
	}
	if blob, ok, err := s.Resume("etl"); string(blob) != `{"operation":"x"}` || !ok || err != nil {
		t.Errorf("Resume: %q, %v, %v", blob, ok, err)
	}
	if covered, blob, ok, err := s.Marks("etl"); covered != 18 || string(blob) != `{"runs":{}}` || !ok || err != nil {
		t.Errorf("Marks: %d, %q, %v, %v", covered, blob, ok, err)
	}
	mustAppend(t, j, "goes on")
}
