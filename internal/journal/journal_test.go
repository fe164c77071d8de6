package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func mustOpen(t testing.TB, dir string, o Options) *Journal {
	t.Helper()
	j, err := Open(dir, o)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return j
}

// die ends a journal as the death of its process would: without Close, which
// notes the end of the log in the state.
func die(t testing.TB, j *Journal) {
	t.Helper()
	j.closing.Do(func() {
		if err := j.release(); err != nil {
			t.Error(err)
		}
	})
}

// quickDir returns a directory in memory where there is one, for tests that open
// a journal thousands of times.
func quickDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "journal") //nolint:usetesting // t.TempDir is on a disk
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// mustAppend appends one record per body in one call.
func mustAppend(t testing.TB, j *Journal, bodies ...string) uint64 {
	t.Helper()
	list := make([][]byte, len(bodies))
	for i, b := range bodies {
		list[i] = []byte(b)
	}
	first, err := j.Append(t.Context(), list...)
	if err != nil {
		t.Fatalf("Append: %v", err)
	}
	return first
}

func mustReader(t testing.TB, j *Journal, next uint64) *Reader {
	t.Helper()
	r, err := j.NewReader(next)
	if err != nil {
		t.Fatalf("NewReader(%d): %v", next, err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// readAll returns what is in the log from its first record on, and the error
// that ended the reading, if it was not the end of the log.
func readAll(ctx context.Context, j *Journal) ([]Record, error) {
	next, end := j.Bounds()
	r, err := j.NewReader(next)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var all []Record
	for next < end {
		list, err := r.Next(ctx, 100, 1<<20)
		if err != nil {
			return all, err
		}
		all = append(all, list...)
		next += uint64(len(list))
	}
	return all, nil
}

// bodiesOf checks that sequences run without a hole, and returns the bodies.
func bodiesOf(t testing.TB, list []Record, first uint64) []string {
	t.Helper()
	var bodies []string
	for i, r := range list {
		if r.Sequence != first+uint64(i) {
			t.Fatalf("record %d has sequence %d, want %d", i, r.Sequence, first+uint64(i))
		}
		bodies = append(bodies, string(r.Body))
	}
	return bodies
}

func segmentFiles(t testing.TB, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestRoundTripOverReopening(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by", "open")
	var want []string
	for round := range 4 {
		j, err := Open(dir, Options{SegmentBytes: 400})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			bodies := []string{fmt.Sprint("a", round, i), "", strings.Repeat("b", i*20)}
			if got := mustAppend(t, j, bodies...); got != uint64(len(want)+1) {
				t.Fatalf("Append returned %d, want %d", got, len(want)+1)
			}
			want = append(want, bodies...)
		}
		list, err := readAll(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if got := bodiesOf(t, list, 1); strings.Join(got, ",") != strings.Join(want, ",") {
			t.Fatalf("round %d: read %q, want %q", round, got, want)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(segmentFiles(t, dir)); n < 10 {
		t.Errorf("%d segments, want many of about 400 bytes", n)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory has mode %v (%v), want 0700", info.Mode(), err)
	}
	if _, err := Verify(dir); err != nil {
		t.Errorf("Verify: %v", err)
	}
}

func TestAGroupLargerThanASegment(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{SegmentBytes: 200})
	big := strings.Repeat("x", 3*readChunk)
	mustAppend(t, j, big, big)
	mustAppend(t, j, "small")
	list, err := readAll(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if got := bodiesOf(t, list, 1); len(got) != 3 || got[0] != big || got[1] != big || got[2] != "small" {
		t.Fatalf("read %d records that differ from what was written", len(got))
	}
}

func TestAppendRefuses(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{})
	if _, err := j.Append(t.Context(), []byte("ok"), make([]byte, MaxBody+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a body over the limit: %v, want ErrTooLarge", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := j.Append(ctx, []byte("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled context: %v", err)
	}
	if first, err := j.Append(t.Context()); first != 1 || err != nil {
		t.Errorf("no bodies: %d, %v, want 1, nil", first, err)
	}
	if first, next := j.Bounds(); first != 1 || next != 1 {
		t.Errorf("Bounds after refusals: %d, %d", first, next)
	}
}

func TestTheLargestBody(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{})
	body := make([]byte, MaxBody)
	body[0], body[MaxBody-1] = 1, 2
	if _, err := j.Append(t.Context(), body); err != nil {
		t.Fatal(err)
	}
	list, err := readAll(t.Context(), j)
	if err != nil || len(list) != 1 || len(list[0].Body) != MaxBody || list[0].Body[MaxBody-1] != 2 {
		t.Fatalf("read %d records, %v", len(list), err)
	}
}

func TestTimeNeverGoesBackwards(t *testing.T) {
	dir := t.TempDir()
	clock := time.Unix(1_700_000_000, 5)
	o := Options{SegmentBytes: 150, Now: func() time.Time { return clock }}
	j := mustOpen(t, dir, o)
	for _, step := range []time.Duration{0, time.Second, -time.Hour, -time.Hour, 3 * time.Hour, -2 * time.Hour} {
		clock = clock.Add(step)
		mustAppend(t, j, strings.Repeat("x", 50))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	clock = clock.Add(-24 * time.Hour) // also over a restart
	j = mustOpen(t, dir, o)
	mustAppend(t, j, "last")
	list, err := readAll(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	if !list[0].Time.Equal(time.Unix(1_700_000_000, 5)) || list[0].Time.Location() != time.UTC {
		t.Errorf("first record at %v", list[0].Time)
	}
	for i := 1; i < len(list); i++ {
		if list[i].Time.Before(list[i-1].Time) {
			t.Errorf("record %d at %v, the one before at %v", i+1, list[i].Time, list[i-1].Time)
		}
	}
	if last := list[len(list)-1].Time; last.Sub(list[0].Time) < 59*time.Minute {
		t.Errorf("time stands still at %v", last)
	}
}

func TestOneAtATime(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	_, err := Open(dir, Options{})
	if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), fmt.Sprint("process ", os.Getpid())) {
		t.Errorf("second Open: %v, want ErrLocked with the directory and the process", err)
	}
	if _, err := Verify(dir); !errors.Is(err, ErrLocked) {
		t.Errorf("Verify of an open journal: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, dir, Options{})
}

func TestADirectoryThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Open(filepath.Join(file, "dir"), Options{})
	if err == nil || !strings.Contains(err.Error(), "journal.dir") {
		t.Errorf("a directory below a file: %v", err)
	}
	if _, err := Verify(filepath.Join(file, "dir")); err == nil {
		t.Error("Verify of nothing succeeded")
	}
}

func TestCloseEndsEverything(t *testing.T) {
	dir := t.TempDir()
	j := mustOpen(t, dir, Options{})
	mustAppend(t, j, "x")
	r := mustReader(t, j, 2)
	read := make(chan error)
	go func() {
		_, err := r.Next(t.Context(), 1, 1)
		read <- err
	}()
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-read; !errors.Is(err, ErrClosed) {
		t.Errorf("Next: %v, want ErrClosed", err)
	}
	if _, err := j.Append(t.Context(), []byte("y")); !errors.Is(err, ErrClosed) {
		t.Errorf("Append: %v, want ErrClosed", err)
	}
	if err := j.Retain(1); !errors.Is(err, ErrClosed) {
		t.Errorf("Retain: %v, want ErrClosed", err)
	}
	if err := j.State().SaveResume("s", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("SaveResume: %v, want ErrClosed", err)
	}
	if err := j.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	j = mustOpen(t, dir, Options{})
	if _, next := j.Bounds(); next != 2 {
		t.Errorf("next is %d after reopening, want 2", next)
	}
}
