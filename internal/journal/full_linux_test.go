package journal

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A copy on a medium that cannot be written is looked at all the same.
func TestLookingWritesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("needs the right to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.CopyFS(dir, os.DirFS(goldenDir)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if r, err := Verify(dir); err != nil || r.Next != 21 {
		t.Errorf("Verify: %+v, %v", r, err)
	}
	if kept, err := Inspect(dir); err != nil || kept.Cursors["events"] != 15 {
		t.Errorf("Inspect: %+v, %v", kept, err)
	}
	if v, err := Look(dir); err != nil {
		t.Errorf("Look: %v, %v", v, err)
	}
}

// A file system that is really full: appends fail, nothing is lost, and room
// makes the journal go on.
func TestAFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("needs the right to mount a tmpfs: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := dir + "/ballast"
	if err := os.WriteFile(ballast, make([]byte, 300<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	j := mustOpen(t, dir, Options{SegmentBytes: 64 << 10})
	var want []string
	fill := func() (err error) {
		for range 10_000 {
			body := strings.Repeat(string(rune('a'+len(want)%26)), 700+len(want)%900)
			if _, err := j.Append(t.Context(), []byte(body), []byte("second")); err != nil {
				return err
			}
			want = append(want, body, "second")
		}
		return nil
	}
	check := func() {
		t.Helper()
		list, err := readAll(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		if got := bodiesOf(t, list, 1); !slices.Equal(got, want) {
			t.Fatalf("read %d records that differ from the %d acknowledged", len(got), len(want))
		}
	}
	for range 3 {
		if err := fill(); !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("fill: %v, want ENOSPC", err)
		}
		check()
	}
	full := len(want)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := fill(); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("fill after room was made: %v, want ENOSPC", err)
	}
	if len(want) < full+200 {
		t.Errorf("only %d records more after room was made", len(want)-full)
	}
	check()
	// Closing and opening a journal on a full disk works, too.
	_ = j.Close() // it may lack the room to note the end
	var err error
	if j, err = Open(dir, Options{SegmentBytes: 64 << 10}); err != nil {
		t.Fatalf("Open on a full disk: %v", err)
	}
	defer j.Close() // as above
	check()
}
