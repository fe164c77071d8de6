package journal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"golang.org/x/sys/unix"
)

func TestConcurrentAppendsShareOneSync(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &faults{}
		j := openFaulty(t, dir, Options{}, f)
		release := make(chan struct{})
		f.sync = func() error { <-release; return nil }
		before := f.syncs.Load()
		firsts := make([]uint64, 101)
		var wg sync.WaitGroup
		add := func(i int) {
			wg.Go(func() {
				first, err := j.Append(t.Context(), fmt.Append(nil, i, "a"), fmt.Append(nil, i, "b"))
				if err != nil {
					t.Error(err)
				}
				firsts[i] = first
			})
		}
		add(0)
		synctest.Wait() // it is in its sync
		for i := 1; i < len(firsts); i++ {
			add(i)
		}
		synctest.Wait() // all others wait for the pen
		close(release)
		wg.Wait()
		if n := f.syncs.Load() - before; n != 2 {
			t.Errorf("101 appends took %d syncs, want 2", n)
		}
		list, err := readAll(t.Context(), j)
		if err != nil {
			t.Fatal(err)
		}
		bodies := bodiesOf(t, list, 1)
		for i, first := range firsts {
			if got, want := bodies[first-1]+bodies[first], fmt.Sprint(i, "a")+fmt.Sprint(i, "b"); got != want {
				t.Errorf("append %d was told %d, where %q stands", i, first, got)
			}
		}
	})
}

func TestCancelOfAnAppend(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &faults{}
		j := openFaulty(t, dir, Options{}, f)
		release := make(chan struct{})
		f.sync = func() error { <-release; return nil }
		type result struct {
			first uint64
			err   error
		}
		start := func(ctx context.Context, body string) chan result {
			c := make(chan result, 1)
			go func() {
				first, err := j.Append(ctx, []byte(body))
				c <- result{first, err}
			}()
			synctest.Wait()
			return c
		}
		ctx, cancel := context.WithCancel(t.Context())
		writing, waiting := start(ctx, "writing"), start(ctx, "waiting")
		cancel()
		if r := <-waiting; !errors.Is(r.err, context.Canceled) {
			t.Errorf("append that waited: %v, want context.Canceled", r.err)
		}
		close(release)
		if r := <-writing; r.first != 1 || r.err != nil {
			t.Errorf("append that had begun to write: %+v, want the result of the write", r)
		}
		if _, next := j.Bounds(); next != 2 {
			t.Errorf("next is %d, want 2: what was cancelled is not written", next)
		}
	})
}

func TestCloseRefusesWhatWaits(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := &faults{}
		j := openFaulty(t, dir, Options{}, f)
		release := make(chan struct{})
		f.sync = func() error { <-release; return nil }
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := j.Append(t.Context(), []byte("x"))
				errs <- err
			}()
			synctest.Wait()
		}
		closed := make(chan error)
		go func() { closed <- j.Close() }()
		if err := <-errs; !errors.Is(err, ErrClosed) {
			t.Errorf("append that waited: %v, want ErrClosed", err)
		}
		close(release)
		if err := <-errs; err != nil {
			t.Errorf("append that was writing: %v", err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// Every kind of failure, then the disk is well again.
func TestAFailedAppendLeavesNothing(t *testing.T) {
	half := func(err error) func(*faults) {
		return func(f *faults) {
			f.write = func(a appender, b []byte, off int64) (int, error) {
				n, _ := a.WriteAt(b[:len(b)*2/3], off)
				return n, err
			}
		}
	}
	cases := map[string]func(*faults){
		"full disk, half written":       half(unix.ENOSPC),
		"write error":                   half(unix.EIO),
		"sync error":                    func(f *faults) { f.sync = func() error { return unix.EIO } },
		"no file for the new segment":   func(f *faults) { f.open = func(string) error { return unix.ENOSPC } },
		"no name for the new segment":   func(f *faults) { f.rename = func() error { return unix.EIO } },
		"new segment named, not synced": func(f *faults) { f.syncDir = func(string) error { return unix.EIO } },
		"cannot cut after a full disk": func(f *faults) {
			half(unix.ENOSPC)(f)
			f.truncate = func() error { return unix.EIO }
		},
	}
	for name, harm := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := &faults{}
			j := openFaulty(t, dir, Options{SegmentBytes: 300}, f)
			var want []string
			for round := range 12 { // at every place in a segment, also at its end
				ok := strings.Repeat(fmt.Sprint(round%10), 10+round)
				mustAppend(t, j, ok)
				want = append(want, ok)

				harm(f)
				var err error
				for range 3 {
					_, err = j.Append(t.Context(), []byte("lost "+strings.Repeat("y", 5*round)), []byte("lost too"))
					if err == nil {
						break
					}
				}
				*f = faults{}
				switch {
				case err == nil: // the failure was one of new segments, and none was needed
					want = append(want, "lost "+strings.Repeat("y", 5*round), "lost too")
				case !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EIO):
					t.Fatalf("round %d: %v, want the error of the disk", round, err)
				}
				if _, next := j.Bounds(); next != uint64(len(want)+1) {
					t.Fatalf("round %d: next is %d, want %d", round, next, len(want)+1)
				}
			}
			check := func(j *Journal) {
				t.Helper()
				list, err := readAll(t.Context(), j)
				if err != nil {
					t.Fatal(err)
				}
				if got := bodiesOf(t, list, 1); !slices.Equal(got, want) {
					t.Fatalf("read %q, want %q", got, want)
				}
			}
			check(j)
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			if r, err := Verify(dir); err != nil || r.Torn != 0 {
				t.Fatalf("Verify: %+v, %v", r, err)
			}
			check(mustOpen(t, dir, Options{SegmentBytes: 300}))
		})
	}
}

// A program that dies after a failed write, with the failure's bytes still
// there, loses nothing either.
func TestDeathAfterAFailedWrite(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	f := &faults{}
	j := openFaulty(t, dir, Options{}, f)
	mustAppend(t, j, "kept")
	f.truncate = func() error { return unix.EIO }
	f.write = func(a appender, b []byte, off int64) (int, error) {
		n, _ := a.WriteAt(b[:len(b)-1], off)
		return n, unix.ENOSPC
	}
	if _, err := j.Append(t.Context(), []byte("a"), []byte("b")); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	j = mustOpen(t, copied, Options{})
	if first := mustAppend(t, j, "next"); first != 2 {
		t.Errorf("next record is %d, want 2", first)
	}
}

func TestOpenRemovesOnlyItsOwnLeftovers(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"00000000000000000001.seg.tmp", "state.db.tmp", "notes.tmp", "bridge.sock"} {
		if err := os.WriteFile(dir+"/"+name, []byte("rest"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustOpen(t, dir, Options{})
	for name, want := range map[string]bool{"00000000000000000001.seg.tmp": false, "state.db.tmp": false, "notes.tmp": true, "bridge.sock": true} {
		if _, err := os.Stat(dir + "/" + name); errors.Is(err, fs.ErrNotExist) == want {
			t.Errorf("%s: %v, want it kept: %v", name, err, want)
		}
	}
}

// A process may have died between a write and its sync, or right after making
// the directory.
func TestOpenMakesDurableWhatItFinds(t *testing.T) {
	top := t.TempDir()
	dir := top + "/a/b"
	var synced []string
	f := &faults{syncDir: func(dir string) error {
		synced = append(synced, dir)
		return nil
	}}
	j := openFaulty(t, dir, Options{}, f)
	for _, want := range []string{top, top + "/a", dir} {
		if !slices.Contains(synced, want) {
			t.Errorf("synced %q, and not %s", synced, want)
		}
	}
	mustAppend(t, j, "x")
	die(t, j)
	f = &faults{}
	openFaulty(t, dir, Options{}, f)
	if f.syncs.Load() == 0 {
		t.Error("the last segment was not synced")
	}
	f = &faults{sync: func() error { return unix.EIO }}
	if _, err := open(t.TempDir(), Options{}, f.disk()); !errors.Is(err, unix.EIO) {
		t.Errorf("Open on a disk that does not sync: %v", err)
	}
}

// What is written into a directory that nobody finds any more is not durable, and the
// directory of that name may be another process's by now.
func TestAppendNeedsItsDirectory(t *testing.T) {
	for name, remove := range map[string]func(dir string) error{
		"removed": os.RemoveAll,
		"exchanged": func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, lockName), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "journal")
			j, err := Open(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close() //nolint:errcheck // its files are gone
			if _, err := j.Append(t.Context(), []byte("a")); err != nil {
				t.Fatal(err)
			}
			if err := remove(dir); err != nil {
				t.Fatal(err)
			}
			if _, err := j.Append(t.Context(), []byte("b")); !errors.Is(err, ErrGone) {
				t.Errorf("Append: got error %v, want ErrGone", err)
			}
		})
	}
}
