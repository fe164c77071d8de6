package bridge

import (
	"errors"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// image is the journal's folder as a crash would have left it at one moment, and how
// many events the destination had got by then.
type image struct {
	dir string
	got int
}

// A crash at any moment leaves each event before the cursor either delivered or among
// the dead letters; and whoever starts from there delivers the rest, and sends none
// again that is a dead letter.
func TestACrashLosesNoDeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const last = 30
		refused := func(e listener.Event) bool { return e.Sequence%3 == 0 }
		to := &receiver{refuse: func(e listener.Event) error {
			time.Sleep(40 * time.Millisecond) // cursors are saved in between
			if refused(e) {
				return sinks.Permanent(errors.New("400 bad request"))
			}
			return nil
		}}
		var mu sync.Mutex
		var images []image
		dir := t.TempDir()
		j, err := journal.Open(dir, journal.Options{Disturb: func(step journal.Step) error {
			if step != journal.StepState {
				return nil
			}
			mu.Lock() // what is on the disk now is from before this change
			defer mu.Unlock()
			copied := t.TempDir()
			images = append(images, image{copied, len(to.ids())})
			return os.CopyFS(copied, os.DirFS(dir))
		}})
		if err != nil {
			t.Fatal(err)
		}
		for n := range int64(last) {
			put(t, j, progressOf("a", n))
		}
		cfg := configs.Sink{Name: "events", From: configs.FromOldest, DeadLetters: configs.DeadLetters{Max: last}}
		o, stop := deliverTo(t, j, cfg, to, &lines{})
		after(time.Minute)
		if o.worker.State().Next != last+1 || o.letters.count() != last/3 {
			t.Fatalf("state %+v", o.worker.State())
		}
		stop()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if len(images) < last/2 {
			t.Fatalf("only %d moments were looked at", len(images))
		}
		for _, i := range images {
			checkImage(t, i, to.ids()[:i.got], cfg, last, refused)
		}
	})
}

func checkImage(t *testing.T, i image, got []string, cfg configs.Sink, last uint64, refused func(listener.Event) bool) {
	t.Helper()
	j, err := journal.Open(i.dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	begin := make(chan struct{})
	again := &receiver{refuse: func(e listener.Event) error {
		<-begin // what was there before must be known
		if refused(e) {
			return sinks.Permanent(errors.New("400 bad request"))
		}
		return nil
	}}
	cursor, _, err := j.State().Cursor(cfg.Name)
	if err != nil {
		t.Fatal(err)
	}
	o, stop := deliverTo(t, j, cfg, again, &lines{})
	before := sequencesOf(t, o.letters)
	close(begin)
	for n := uint64(1); n < cursor; n++ {
		if !slices.Contains(before, n) && !slices.Contains(got, progressOf("a", int64(n-1)).ID) {
			t.Errorf("the cursor is at %d, and %d is neither delivered nor a dead letter", cursor, n)
		}
	}
	after(time.Minute)
	stop()
	for n := uint64(1); n <= last; n++ {
		dead := slices.Contains(sequencesOf(t, o.letters), n)
		if dead != refused(listener.Event{Sequence: n}) {
			t.Errorf("event %d is a dead letter: %t", n, dead)
		}
		if came := slices.Contains(append(got, again.ids()...), progressOf("a", int64(n-1)).ID); !came && !dead {
			t.Errorf("event %d was never delivered", n)
		}
		if slices.Contains(before, n) && slices.Contains(again.asked, n) {
			t.Errorf("event %d was sent again, and it was a dead letter", n)
		}
	}
	if err := j.Close(); err != nil {
		t.Error(err)
	}
}
