package bridge

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect/connecttest"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// With block a full journal takes nothing until the slowest sink has moved on.
func TestBlockWaitsForTheSlowestSink(t *testing.T) {
	log := &lines{}
	j := tight(t, t.TempDir(), 3000)
	for batch := range int64(40) {
		put(t, j, progressOf("a", batch))
	}
	cursors := map[string]uint64{"events": 4, "other": 41, "gone": 1} // gone is configured no more
	if err := j.State().SaveCursors(cursors); err != nil {
		t.Fatal(err)
	}
	replaysOf := func(sink string) *replays { return &replays{journal: j, sink: configs.Sink{Name: sink}} }
	outlets := []*outlet{
		{name: "events", spool: spoolOf(t, j, log, sinks.Match{}), replays: replaysOf("events")},
		{name: "other", spool: spoolOf(t, j, log, sinks.Match{}), replays: replaysOf("other")},
	}
	k := &keeper{cfg: configs.Journal{WhenFull: configs.WhenFullBlock, MaxBytes: 3000}, journal: j, outlets: outlets, log: slog.New(slog.NewTextHandler(log, nil))}
	err := k.room(t.Context())
	if first, _ := j.Bounds(); !errors.Is(err, errFull) || !strings.Contains(err.Error(), "sink events") || first > 4 {
		t.Fatalf("room: %v, the journal begins at %d", err, first)
	}
	if err := j.State().SaveCursors(map[string]uint64{"events": 41}); err != nil {
		t.Fatal(err)
	}
	again, err := outlets[1].replays.Ask(4, 40)
	if err != nil {
		t.Fatal(err)
	}
	err = k.room(t.Context())
	if first, _ := j.Bounds(); !errors.Is(err, errFull) || !strings.Contains(err.Error(), "sink other") || first > 4 {
		t.Errorf("room while a replay needs it: %v, the journal begins at %d", err, first)
	}
	again.Next = 40
	if err := outlets[1].replays.Save(again); err != nil {
		t.Fatal(err)
	}
	if err := k.room(t.Context()); err != nil || j.Stats().Bytes > 3000 {
		t.Errorf("room: %v, %d bytes", err, j.Stats().Bytes)
	}
	if log.String() != "" {
		t.Errorf("logged %s", log)
	}
}

// A source whose journal has no room reads nothing, and goes on when there is some.
func TestASourceWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		j, err := journal.Open(w.dir, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var full atomic.Bool
		full.Store(true)
		s := &source{journal: j, log: slog.New(slog.NewTextHandler(w.log, nil)), room: func(context.Context) error {
			if full.Load() {
				return errFull
			}
			return nil
		}}
		done := make(chan error, 1)
		go func() { done <- s.commit(t.Context(), []listener.Event{progressOf("a", 0)}) }()
		after(30 * time.Second)
		if _, next := j.Bounds(); next != 1 {
			t.Errorf("the full journal took %d records", next-1)
		}
		full.Store(false)
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, next := j.Bounds(); next != 2 {
			t.Errorf("the journal has %d records", next-1)
		}
		full.Store(true)
		if err := s.commit(t.Context(), []listener.Event{progressOf("a", 1)}); !errors.Is(err, errUnwritable) || !errors.Is(err, errFull) {
			t.Errorf("after more than a minute: %v", err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
}
