package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/listener"
)

// progress makes progress event n of a query.
func progress(query string, n int) listener.Event {
	return listener.Event{
		Sequence: uint64(n + 1), ID: fmt.Sprintf("run-%s:progress:%d", query, n), Kind: listener.Progress,
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

// ids returns where each stored event stands, and fails on repeats.
func ids(t *testing.T, s *testServer) []string {
	t.Helper()
	all, err := s.stored(t.Context(), t)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]string, len(all))
	for i, msg := range all {
		list[i] = msg.Headers().Get("ce-id")
	}
	return list
}

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
	wantOrder(t, ids(t, s), events)
}

func TestNamesTheSubjectThatNoStreamTakes(t *testing.T) {
	s := startServer(t, nil)
	sink := newSink(t, Config{URL: s.url(), JetStream: true})
	acked, err := sink.Deliver(t.Context(), []listener.Event{progress("a", 0)})
	if acked != 0 || !errors.Is(err, jetstream.ErrNoStreamResponse) {
		t.Fatalf("acked %d, err %v", acked, err)
	}
	for _, part := range []string{"spark.etl.a.progress", "nats stream add", "jetstream: false"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not mention %q", err, part)
		}
	}
}

// An event must not be stored before an earlier one of its query that no stream
// takes yet.
func TestKeepsOrderWhenAStreamIsMissing(t *testing.T) {
	s := startServer(t, nil)
	s.addStream(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"spark.*.*.progress"} })
	sink := newSink(t, Config{URL: s.url(), JetStream: true})
	deliverAll(t.Context(), t, sink, []listener.Event{progress("a", 0), progress("a", 1)})

	idle := progress("a", 3)
	idle.ID, idle.Kind = "run-a:idle:1", listener.Idle
	events := []listener.Event{progress("a", 2), idle, progress("a", 4), progress("a", 5)}
	acked, err := sink.Deliver(t.Context(), events)
	if acked != 1 || err == nil {
		t.Fatalf("acked %d, err %v, want 1 and an error", acked, err)
	}
	s.addStream(t, nil)
	deliverAll(t.Context(), t, sink, events[1:])
	wantOrder(t, ids(t, s), append([]listener.Event{progress("a", 0), progress("a", 1)}, events...))
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

func large() listener.Event {
	event := progress("a", 0)
	event.Payload = []byte(`{"batchId":0,"text":"` + strings.Repeat("x", 100<<10) + `"}`)
	return event
}

func wantCut(t *testing.T, s *testServer, limit int) {
	t.Helper()
	all, err := s.stored(t.Context(), t)
	if err != nil || len(all) != 1 {
		t.Fatalf("stored %d messages, err %v", len(all), err)
	}
	msg := &nats.Msg{Header: all[0].Headers(), Data: all[0].Data()}
	if size := wireSize(msg); size > limit || size < limit/2 {
		t.Errorf("stored %d bytes, limit %d", size, limit)
	}
	if msg.Header.Get("ce-sparktruncated") != "true" || !json.Valid(msg.Data) {
		t.Errorf("not marked or not JSON: %v %.80s", msg.Header, msg.Data)
	}
}

func TestCutsToTheServersLimit(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.MaxPayload = 16 << 10 })
	s.addStream(t, nil)
	deliverAll(t.Context(), t, newSink(t, Config{URL: s.url(), JetStream: true}), []listener.Event{large()})
	wantCut(t, s, 16<<10)
}

func TestCutsToTheStreamsLimit(t *testing.T) {
	for name, publish := range map[string]*server.SubjectPermission{
		"which can be asked for": {Allow: []string{">"}},
		"which is not told":      {Allow: []string{"spark.>"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, nil)
			s.restrict(t, publish)
			s.addStream(t, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 9000 })
			deliverAll(t.Context(), t, newSink(t, Config{URL: s.bridgeURL(), JetStream: true}), []listener.Event{large()})
			wantCut(t, s, 9000)
		})
	}
}

func TestTellsWhatIsForbidden(t *testing.T) {
	for _, js := range []bool{true, false} {
		t.Run(fmt.Sprintf("jetstream %v", js), func(t *testing.T) {
			s := startServer(t, nil)
			s.restrict(t, &server.SubjectPermission{Allow: []string{"spark.etl.b.>"}})
			s.addStream(t, nil)
			sink := newSink(t, Config{URL: s.bridgeURL(), JetStream: js})
			for range 2 { // also on the connection after it
				_, err := sink.Deliver(t.Context(), []listener.Event{progress("a", 0)})
				if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(err.Error(), "spark.etl.a.progress") {
					t.Fatalf("err %v, want a permission violation that names the subject", err)
				}
			}
			deliverAll(t.Context(), t, sink, []listener.Event{progress("b", 0)})
		})
	}
}

func TestRefusedLogin(t *testing.T) {
	s := startServer(t, nil)
	s.restrict(t, nil)
	sink := newSink(t, Config{URL: strings.Replace(s.bridgeURL(), "pw", "s3cret", 1), JetStream: true})
	_, err := sink.Deliver(t.Context(), []listener.Event{progress("a", 0)})
	if !errors.Is(err, nats.ErrAuthorization) || strings.Contains(err.Error(), "s3cret") {
		t.Fatalf("err %v, want a refused login without the password", err)
	}
}

func TestServerDownIsAnErrorOfDeliver(t *testing.T) {
	s := startServer(t, nil)
	s.stop(t)
	sink := newSink(t, Config{URL: s.url(), JetStream: true})
	_, err := sink.Deliver(t.Context(), []listener.Event{progress("a", 0)})
	if err == nil || !strings.Contains(err.Error(), "refused") || !strings.Contains(err.Error(), s.url()) {
		t.Fatalf("err %v, want one that says what and where", err)
	}
	s.start(t)
	s.addStream(t, nil)
	deliverAll(t.Context(), t, sink, []listener.Event{progress("a", 0)})
}

func TestFrozenServer(t *testing.T) {
	for _, js := range []bool{true, false} {
		for _, fill := range []int{1, 20_000} { // the second is more than the sockets hold
			t.Run(fmt.Sprintf("jetstream %v, %d events", js, fill), func(t *testing.T) {
				frozenServer(t, js, fill)
			})
		}
	}
}

func frozenServer(t *testing.T, js bool, fill int) {
	s := startServer(t, nil)
	s.addStream(t, nil)
	sink := newSink(t, Config{URL: s.url(), JetStream: js})
	deliverAll(t.Context(), t, sink, []listener.Event{progress("a", 0)})
	s.proxy.Freeze(t)
	events := make([]listener.Event, fill)
	for i := range events {
		events[i] = progress("a", i+1)
		events[i].Payload = fmt.Appendf(nil, `{"text":"%*s"}`, 1000, "")
	}
	if acked, err := sink.Deliver(t.Context(), events); acked != 0 || err == nil {
		t.Fatalf("acked %d, err %v from a frozen server", acked, err)
	}
	sink.ackTimeout = time.Hour
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	if acked, err := sink.Deliver(ctx, events); acked != 0 || !errors.Is(err, context.Canceled) {
		t.Fatalf("acked %d, err %v, want the context's error", acked, err)
	}
}

func TestARepeatIsStoredOnce(t *testing.T) {
	s := startServer(t, nil)
	s.addStream(t, nil)
	events := []listener.Event{progress("a", 0), progress("a", 1)}
	for range 3 {
		deliverAll(t.Context(), t, newSink(t, Config{URL: s.url(), JetStream: true}), events)
	}
	wantOrder(t, ids(t, s), events)
}

func TestCoreFlush(t *testing.T) {
	s := startServer(t, nil)
	sub, err := s.client(t).SubscribeSync("spark.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		t.Fatal(err)
	}
	sink := newSink(t, Config{URL: s.url()})
	var events []listener.Event
	for n := range 2 * maxWindow {
		events = append(events, progress("a", n))
	}
	if acked, err := sink.Deliver(t.Context(), events); acked != len(events) || err != nil {
		t.Fatalf("acked %d, err %v", acked, err)
	}
	for i := range events {
		msg, err := sub.NextMsg(time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if got := msg.Header.Get("ce-id"); got != events[i].ID || string(msg.Data) != string(events[i].Payload) {
			t.Fatalf("message %d is %s %s", i, got, msg.Data)
		}
	}
	s.stop(t)
	if acked, err := sink.Deliver(t.Context(), events); acked != 0 || err == nil {
		t.Fatalf("acked %d, err %v after the server has gone", acked, err)
	}
}
