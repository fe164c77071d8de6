package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
	"sparkbridge/sinks/nats"
	hook "sparkbridge/sinks/webhook"
)

// TestBothSinksGetTheSame sends events by the bridge's own sinks to the demo's servers.
func TestBothSinksGetTheSame(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	got := [sinkCount]chan event{make(chan event, 10), make(chan event, 10)}
	b, err := startBroker(ctx, t.TempDir(), func(e event) { got[natsSink] <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer b.stop()
	h, err := startWebhook(func(e event) { got[webhookSink] <- e })
	if err != nil {
		t.Fatal(err)
	}
	defer h.stop()

	sent := sample(t)
	deliver(ctx, t, sent, func() (sinks.Sink, error) {
		return nats.New(nats.Config{URL: b.url(), Subject: "spark.{source}.{query}.{kind}", JetStream: true}, "nats", slog.New(slog.DiscardHandler))
	})
	deliver(ctx, t, sent, func() (sinks.Sink, error) {
		return hook.New(hook.Config{URL: h.url, Timeout: time.Minute}, "webhook", "test", slog.New(slog.DiscardHandler))
	})
	for _, want := range sent {
		one, other := receiveOne(ctx, t, got[natsSink]), receiveOne(ctx, t, got[webhookSink])
		if !reflect.DeepEqual(one, other) {
			t.Errorf("NATS got\n%+v, the webhook\n%+v", one, other)
		}
		if one.ID != want.ID || one.Kind() != want.Kind || one.Subject != want.Name || one.RunID != want.RunID || one.Outcome != string(want.Outcome) {
			t.Errorf("got %+v, want %+v", one, want)
		}
		if (want.Kind == listener.KindProgress) != (one.Data.NumInputRows == 60) || (want.Kind == listener.KindTerminated) != strings.Contains(one.Data.Exception, "boom ü") {
			t.Errorf("got the payload %+v of a %s event", one.Data, want.Kind)
		}
	}
}

func sample(t *testing.T) []listener.Event {
	var events []listener.Event
	for _, kind := range []listener.Kind{listener.KindProgress, listener.KindIdle, listener.KindTerminated} {
		payload, err := os.ReadFile(filepath.Join("testdata", string(kind)+".json"))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, listener.Event{
			ID: "run:" + string(kind), Kind: kind, Origin: listener.OriginBus, Source: "demo", Name: `заказы "a" 100%`,
			QueryID: "b8908c12", RunID: "run", BatchID: listener.NoBatch, Time: noon, Recorded: noon, Payload: payload,
		})
	}
	events[2].Outcome = listener.OutcomeFailed
	return events
}

func deliver(ctx context.Context, t *testing.T, events []listener.Event, open func() (sinks.Sink, error)) {
	t.Helper()
	sink, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if n, err := sink.Deliver(ctx, events); err != nil {
		t.Errorf("delivered %d: %v", n, err)
	}
	if err := sink.Close(); err != nil {
		t.Error(err)
	}
}

func receiveOne(ctx context.Context, t *testing.T, from <-chan event) event {
	t.Helper()
	select {
	case e := <-from:
		return e
	case <-ctx.Done():
		t.Fatal("an event has not arrived")
		return event{}
	}
}

func TestWebhookRefusesWhatIsNoEvent(t *testing.T) {
	h, err := startWebhook(func(e event) { t.Errorf("received %+v", e) })
	if err != nil {
		t.Fatal(err)
	}
	defer h.stop()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, c := range []struct {
		path, body string
		want       int
	}{{"/events", "no JSON", http.StatusBadRequest}, {"/", "{}", http.StatusNotFound}} {
		answer, err := client.Post(strings.Replace(h.url, "/events", c.path, 1), "application/json", strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.want {
			t.Errorf("%s answers %d to %q, want %d", c.path, answer.StatusCode, c.body, c.want)
		}
	}
}
