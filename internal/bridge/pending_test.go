package bridge

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// What waits for a sink, and since when: also before it was tried, while it fails, and
// over a restart. What the sink does not want waits for nothing.
func TestPendingOfASink(t *testing.T) {
	var works, came atomic.Bool
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		came.Store(true)
		if !works.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer hook.Close()
	var clock atomic.Int64
	clock.Store(1000)
	j := openJournal(t, t.TempDir(), journal.Options{Now: func() time.Time { return time.Unix(clock.Load(), 0) }})
	cfg := &configs.Config{Sinks: []configs.Sink{{
		Name: "hook", From: configs.FromOldest, DeadLetters: configs.DeadLetters{Max: 10}, Match: sinks.Match{Kinds: []listener.Kind{listener.KindProgress}},
		Retry: configs.Retry{Initial: time.Millisecond, Max: 10 * time.Millisecond}, Webhook: webhookConfig(hook.URL),
	}}}
	want := func(o *outlet, when string, pending uint64, since int64) {
		t.Helper()
		s := o.status(j)
		at := s.Oldest.Unix()
		if s.Oldest.IsZero() {
			at = 0
		}
		if s.Pending != pending || at != since {
			t.Errorf("%s: %d wait since %d, want %d since %d", when, s.Pending, at, pending, since)
		}
	}
	put(t, j, endOf("q", listener.OutcomeFailed)) // not wanted
	for i := range int64(3) {
		clock.Store(2000 + i)
		put(t, j, progressOf("q", i))
	}
	outlets, stop := runOutlets(t, j, cfg)
	eventually(t, "a failure", func() bool { return outlets[0].status(j).Error != "" })
	want(outlets[0], "while it fails", 3, 2000)
	stop()

	came.Store(false)
	outlets, stop = runOutlets(t, j, cfg)
	want(outlets[0], "after a restart", 3, 2000)
	works.Store(true)
	eventually(t, "all delivered", func() bool { return outlets[0].status(j).Pending == 0 })
	want(outlets[0], "at the end", 0, 0)
	clock.Store(3000)
	put(t, j, endOf("q", listener.OutcomeFailed))
	eventually(t, "the unwanted passed", func() bool { return outlets[0].status(j).Pending == 0 })
	stop()
	if !came.Load() {
		t.Error("nothing came")
	}
}

// A destination that wants no more shows as stopped, not only as failing.
func TestAStoppedSinkShows(t *testing.T) {
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	defer hook.Close()
	j := openJournal(t, t.TempDir(), journal.Options{})
	put(t, j, progressOf("q", 0))
	outlets, stop := runOutlets(t, j, &configs.Config{Sinks: []configs.Sink{{
		Name: "hook", From: configs.FromOldest, DeadLetters: configs.DeadLetters{Max: 10}, Webhook: webhookConfig(hook.URL),
	}}})
	eventually(t, "the stop", func() bool { return outlets[0].status(j).Stopped })
	if s := outlets[0].status(j); s.Error == "" || s.Pending != 1 {
		t.Errorf("%+v", s)
	}
	stop()
}

// What retention takes from a sink is counted, and what is left is what waits.
func TestLostEventsAreCounted(t *testing.T) {
	j := tight(t, t.TempDir(), 3000)
	outlets, err := openOutlets(&configs.Config{Sinks: []configs.Sink{{
		Name: "hook", From: configs.FromOldest, DeadLetters: configs.DeadLetters{Max: 10}, Webhook: webhookConfig("http://127.0.0.1:1"),
	}}}, j, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	o := outlets[0]
	defer o.reader.Close()
	for batch := range int64(40) {
		put(t, j, progressOf("a", batch))
	}
	k := &keeper{cfg: configs.Journal{WhenFull: configs.WhenFullDropOldest, MaxBytes: 3000}, journal: j, outlets: outlets, log: slog.New(slog.DiscardHandler)}
	if err := k.retain(t.Context()); err != nil {
		t.Fatal(err)
	}
	first, _ := j.Bounds()
	if s := o.status(j); first == 1 || s.Lost != first-1 || s.Pending != 41-first {
		t.Errorf("%d lost and %d pending, want %d and %d", s.Lost, s.Pending, first-1, 41-first)
	}
}
