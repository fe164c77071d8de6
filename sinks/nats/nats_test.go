package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/listener"
)

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

func TestCoreFlush(t *testing.T) {
	s := startServer(t, nil)
	client := s.client(t)
	sub, err := client.SubscribeSync("spark.>")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(sub.SetPendingLimits(-1, -1), client.Flush()); err != nil { // the server knows of it before the first event
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
