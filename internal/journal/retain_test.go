package journal

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// tenSegments appends ten records, each in a segment of its own and a minute
// after the one before.
func tenSegments(t *testing.T, dir string, o Options, f *faults) (*Journal, *time.Time) {
	t.Helper()
	clock := time.Unix(1_700_000_000, 0)
	o.SegmentBytes, o.Now = 200, func() time.Time { return clock }
	j := openFaulty(t, dir, o, f)
	for i := range 10 {
		if i > 0 {
			clock = clock.Add(time.Minute)
		}
		mustAppend(t, j, strings.Repeat("x", 120))
	}
	return j, &clock
}

func first(j *Journal) uint64 { first, _ := j.Bounds(); return first }

func TestRetainByBytes(t *testing.T) {
	dir := t.TempDir()
	j, _ := tenSegments(t, dir, Options{MaxBytes: 4 * (segmentHead + frameHead + 120)}, &faults{})
	for _, c := range []struct{ floor, want uint64 }{{0, 1}, {1, 1}, {2, 2}, {4, 4}, {100, 7}, {100, 7}} {
		if err := j.Retain(c.floor); err != nil {
			t.Fatal(err)
		}
		if got := first(j); got != c.want {
			t.Errorf("Retain(%d): first is %d, want %d", c.floor, got, c.want)
		}
	}
	if n := len(segmentFiles(t, dir)); n != 4 {
		t.Errorf("%d segments are left, want 4", n)
	}
}

func TestRetainByAgeAlsoAfterReopening(t *testing.T) {
	dir := t.TempDir()
	o := Options{MaxAge: 5*time.Minute + time.Second}
	j, clock := tenSegments(t, dir, o, &faults{})
	if err := j.Retain(100); err != nil {
		t.Fatal(err)
	}
	if got := first(j); got != 5 {
		t.Errorf("first is %d, want 5", got)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	*clock = clock.Add(2 * time.Minute)
	o.Now = func() time.Time { return *clock }
	j = mustOpen(t, dir, o)
	if err := j.Retain(100); err != nil {
		t.Fatal(err)
	}
	if got := first(j); got != 7 {
		t.Errorf("after reopening first is %d, want 7", got)
	}
	*clock = clock.Add(time.Hour)
	if err := j.Retain(100); err != nil {
		t.Fatal(err)
	}
	if first, next := j.Bounds(); first != 10 || next != 11 {
		t.Errorf("bounds are %d, %d: the last segment is never deleted", first, next)
	}
}

func TestRetainWithoutLimitsKeepsAll(t *testing.T) {
	j, clock := tenSegments(t, t.TempDir(), Options{}, &faults{})
	*clock = clock.Add(1e6 * time.Hour)
	if err := j.Retain(100); err != nil || first(j) != 1 {
		t.Errorf("Retain: %v, first %d", err, first(j))
	}
}

func TestAReaderLearnsOnceWhatIsGone(t *testing.T) {
	j, _ := tenSegments(t, t.TempDir(), Options{MaxBytes: 500}, &faults{})
	r := mustReader(t, j, 2)
	if _, err := r.Next(t.Context(), 1, 1); err != nil {
		t.Fatal(err)
	}
	if err := j.Retain(8); err != nil {
		t.Fatal(err)
	}
	_, err := r.Next(t.Context(), 1, 1)
	var gone *RetiredError
	if !errors.As(err, &gone) || gone.From != 3 || gone.To != 7 {
		t.Fatalf("Next: %v, want 3 to 7 gone", err)
	}
	list, err := r.Next(t.Context(), 1, 1)
	if err != nil || list[0].Sequence != 8 {
		t.Fatalf("Next after that: %v, %v, want record 8", list, err)
	}
	late := mustReader(t, j, 1)
	if _, err := late.Next(t.Context(), 1, 1); !errors.As(err, &gone) || gone.From != 1 || gone.To != 7 {
		t.Errorf("a new reader: %v, want 1 to 7 gone", err)
	}
}

func TestRetainThatCannotRemoveTriesAgain(t *testing.T) {
	dir := t.TempDir()
	f := &faults{}
	j, _ := tenSegments(t, dir, Options{MaxBytes: 500}, f)
	third := segmentPath(dir, 3)
	f.remove = func(path string) error {
		if path == third {
			return unix.EIO
		}
		return nil
	}
	if err := j.Retain(6); !errors.Is(err, unix.EIO) {
		t.Fatalf("Retain: %v, want EIO", err)
	}
	if got := first(j); got != 6 {
		t.Errorf("first is %d, want 6", got)
	}
	if n := len(segmentFiles(t, dir)); n != 8 {
		t.Errorf("%d files, want 8: none may go before an older one", n)
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if got := first(mustOpen(t, copied, Options{})); got != 3 {
		t.Errorf("a crash here leaves a log from %d, want 3", got)
	}
	f.remove = nil
	if err := j.Retain(6); err != nil {
		t.Fatal(err)
	}
	if n := len(segmentFiles(t, dir)); n != 5 {
		t.Errorf("%d files, want 5", n)
	}
}
