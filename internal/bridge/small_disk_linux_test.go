package bridge

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

// A file system that is really full: the bridge acknowledges nothing that it does not
// have, loses nothing, and goes on without a restart when there is room.
func TestASmallDiskThatFills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		if err := unix.Mount("tmpfs", w.dir, "tmpfs", 0, "size=1m"); err != nil {
			t.Skipf("needs the right to mount a tmpfs: %v", err)
		}
		mounted := w.dir
		defer func() {
			if err := unix.Unmount(mounted, 0); err != nil {
				t.Error(err)
			}
		}()
		ballast := filepath.Join(mounted, "ballast")
		if err := os.WriteFile(ballast, make([]byte, 600<<10), 0o600); err != nil {
			t.Fatal(err)
		}
		session := w.job(query("a"))
		w.start()
		after(10 * time.Second)
		batches := 0
		grow := func(n int) {
			for range n {
				doc := progress("a", batches)
				session.Progress(doc[:len(doc)-1] + `,"text":"` + strings.Repeat("x", 10_000) + `"}`)
				batches++
				after(100 * time.Millisecond)
			}
		}
		grow(60)
		if w.log.count("no space left on device") == 0 {
			t.Fatalf("the disk is not full: %s", w.log)
		}
		_, next := w.face.journal.Bounds()
		if held, put := int(next), batches; held >= put {
			t.Errorf("the journal has %d records of %d batches", held, put)
		}
		acknowledged := w.releases()
		after(30 * time.Second)
		if now := w.releases(); now != acknowledged {
			t.Errorf("%d responses were acknowledged while the disk was full", now-acknowledged)
		}

		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		after(30 * time.Second)
		grow(5)
		after(10 * time.Second)
		w.halt()
		want := []string{"a:started:inferred"}
		for batch := range batches {
			want = append(want, fmt.Sprint("a:progress:", batch))
		}
		if got := w.ids(); !slices.Equal(got, want) {
			t.Errorf("events\n got %v\nwant %v\n%s", got, want, w.log)
		}
		if w.log.count("state=lost") != 0 {
			t.Errorf("the bus was given up within a minute: %s", w.log)
		}
	})
}

// releases counts the times that responses were acknowledged to Spark.
func (w *world) releases() (n int) {
	for _, in := range connecttest.CallsOf[*sparkpb.ReleaseExecuteRequest](w.spark) {
		if in.GetReleaseUntil() != nil {
			n++
		}
	}
	return n
}
