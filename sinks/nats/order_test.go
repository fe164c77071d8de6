package nats

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/listener"
)

// progress makes progress event n of a query.
func progress(query string, n int) listener.Event {
	return listener.Event{
		Sequence: uint64(n + 1), ID: fmt.Sprintf("run-%s:progress:%d", query, n), Kind: listener.KindProgress,
		Origin: listener.OriginBus, Source: "etl", QueryID: "id-" + query, RunID: "run-" + query, Name: query,
		BatchID: int64(n), Time: time.UnixMilli(1_700_000_000_000 + int64(n)).UTC(),
		Payload: fmt.Appendf(nil, `{"batchId":%d,"name":%q}`, n, query),
	}
}

// deliverAll delivers until all is acknowledged, as a worker would.
func deliverAll(ctx context.Context, t *testing.T, sink *Sink, events []listener.Event) {
	t.Helper()
	for len(events) > 0 {
		acked, err := sink.Deliver(ctx, events[:min(512, len(events))])
		events = events[acked:]
		if err != nil {
			select {
			case <-ctx.Done():
				t.Fatalf("%d events left: %v", len(events), err)
			case <-time.After(10 * time.Millisecond):
			}
		}
	}
}

func (s *testServer) wantOrder(t *testing.T, events []listener.Event) {
	t.Helper()
	all, err := s.stored(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	wantOrder(t, ids(all), events)
}

func ids(messages []jetstream.Msg) []string {
	list := make([]string, len(messages))
	for i, msg := range messages {
		list[i] = msg.Headers().Get("ce-id")
	}
	return list
}

// wantOrder fails when an event is missing, there twice, or before an earlier
// one of its query.
func wantOrder(t *testing.T, got []string, events []listener.Event) {
	t.Helper()
	if len(got) != len(events) {
		t.Errorf("stored %d messages, want %d", len(got), len(events))
	}
	at := make(map[string]int, len(got))
	for i, id := range got {
		if first, found := at[id]; found {
			t.Fatalf("%s is stored twice, at %d and %d", id, first, i)
		}
		at[id] = i
	}
	last := make(map[string]int)
	for i := range events {
		e := &events[i]
		place, found := at[e.ID]
		if !found {
			t.Fatalf("%s is lost", e.ID)
		}
		if before, seen := last[e.QueryID]; seen && place < before {
			t.Fatalf("%s is stored before an earlier event of its query", e.ID)
		}
		last[e.QueryID] = place
	}
}

func TestKeepsOrderOverRestarts(t *testing.T) {
	s := startServer(t, nil)
	s.addStream(t, nil)
	sink := newSink(t, Config{URL: s.url(), JetStream: true})
	var events []listener.Event
	for n := range 4000 {
		for _, query := range []string{"a", "b", "c", "d", "e"} {
			events = append(events, progress(query, n))
		}
	}
	// A restart each time a fifth has been delivered: in the middle of a window,
	// since the deliverer does not wait.
	reached := make(chan struct{})
	var restarts sync.WaitGroup
	restarts.Go(func() {
		for range reached {
			s.stop(t)
			s.start(t)
		}
	})
	for i := range 5 {
		deliverAll(t.Context(), t, sink, events[i*4000:(i+1)*4000])
		if i < 4 {
			reached <- struct{}{}
		}
	}
	close(reached)
	restarts.Wait()
	s.wantOrder(t, events)
}

// An event must not be stored before an earlier one of its query that no stream
// takes yet.
func TestKeepsOrderWhenAStreamIsMissing(t *testing.T) {
	s := startServer(t, nil)
	s.addStream(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"spark.*.*.progress"} })
	sink := newSink(t, Config{URL: s.url(), JetStream: true})
	deliverAll(t.Context(), t, sink, []listener.Event{progress("a", 0), progress("a", 1)})

	idle := progress("a", 3)
	idle.ID, idle.Kind = "run-a:idle:1", listener.KindIdle
	events := []listener.Event{progress("a", 2), idle, progress("a", 4), progress("a", 5)}
	acked, err := sink.Deliver(t.Context(), events)
	if acked != 1 || err == nil {
		t.Fatalf("acked %d, err %v, want 1 and an error", acked, err)
	}
	s.addStream(t, nil)
	deliverAll(t.Context(), t, sink, events[1:])
	s.wantOrder(t, append([]listener.Event{progress("a", 0), progress("a", 1)}, events...))
}

// A stream that refuses what is too much, and has room again at any moment, may
// refuse one event and take the next.
func TestKeepsOrderWhenAFullStreamGetsRoom(t *testing.T) {
	s := startServer(t, nil)
	s.addStream(t, func(c *jetstream.StreamConfig) {
		c.Discard, c.MaxMsgs, c.Retention = jetstream.DiscardNew, 50, jetstream.WorkQueuePolicy
	})
	js := s.jetstream(t)
	consumer, err := js.CreateConsumer(t.Context(), "spark", jetstream.ConsumerConfig{Durable: "slow", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		t.Fatal(err)
	}
	const total = 2000
	var events []listener.Event
	for n := range total {
		events = append(events, progress("a", n))
	}
	var got []string
	var reading sync.WaitGroup
	reading.Go(func() {
		for len(got) < total {
			batch, err := consumer.Fetch(7, jetstream.FetchMaxWait(time.Second))
			if err != nil {
				t.Error(err)
				return
			}
			for msg := range batch.Messages() {
				got = append(got, msg.Headers().Get("ce-id"))
				_ = msg.Ack()
			}
			if t.Context().Err() != nil {
				return
			}
		}
	})
	deliverAll(t.Context(), t, newSink(t, Config{URL: s.url(), JetStream: true}), events)
	reading.Wait()
	wantOrder(t, got, events)
}

// Events of one query are sent ahead of acknowledgements where that is safe, and
// only there.
func TestLearnsWhereOrderIsKept(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*jetstream.StreamConfig)
		want   int // events of one query under way together
	}{
		"deletes the oldest": {nil, 10},
		"refuses the newest": {func(c *jetstream.StreamConfig) { c.Discard, c.MaxMsgs = jetstream.DiscardNew, 1000 }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, nil)
			s.addStream(t, test.change)
			sink := newSink(t, Config{URL: s.url(), JetStream: true})
			deliverAll(t.Context(), t, sink, []listener.Event{progress("a", 0)})
			var events []listener.Event
			for n := range 10 {
				events = append(events, progress("a", n+1))
			}
			acked, err := sink.session.publishWindow(t.Context(), events)
			if acked != test.want || err != nil {
				t.Errorf("a window of %d, err %v, want %d", acked, err, test.want)
			}
		})
	}
}

func TestARepeatIsStoredOnce(t *testing.T) {
	s := startServer(t, nil)
	s.addStream(t, nil)
	events := []listener.Event{progress("a", 0), progress("a", 1)}
	for range 3 {
		deliverAll(t.Context(), t, newSink(t, Config{URL: s.url(), JetStream: true}), events)
	}
	s.wantOrder(t, events)
}
