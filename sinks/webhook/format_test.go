package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

func TestFormats(t *testing.T) {
	e := listener.Event{ID: "r:idle:1", Kind: listener.KindIdle, Source: "etl", QueryID: "q", RunID: "r", Name: "a b", Payload: []byte(`{"id":"q"}`)}
	for format, want := range map[sinks.Format]struct{ contentType, ceID, ceName, body string }{
		"":                     {sinks.StructuredContentType, "", "", string(sinks.Structured(&e))},
		sinks.FormatStructured: {sinks.StructuredContentType, "", "", string(sinks.Structured(&e))},
		sinks.FormatBinary:     {"application/json", e.ID, "a%20b", string(e.Payload)},
		sinks.FormatRaw:        {"application/json", "", "", string(e.Payload)},
	} {
		t.Run(string(format), func(t *testing.T) {
			var got http.Header
			var body strings.Builder
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got = r.Header
				b := make([]byte, r.ContentLength)
				_, _ = r.Body.Read(b)
				body.Write(b)
			}))
			defer server.Close()
			s, err := New(Config{URL: server.URL, Format: format}, "pager", "test", slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if n, err := s.Deliver(t.Context(), []listener.Event{e}); n != 1 || err != nil {
				t.Fatalf("delivered %d, %v", n, err)
			}
			if got.Get("Content-Type") != want.contentType || got.Get("ce-id") != want.ceID || got.Get("ce-sparkqueryname") != want.ceName ||
				body.String() != want.body || got.Get("webhook-id") != e.ID {
				t.Errorf("headers %v, body %s", got, body.String())
			}
		})
	}
}

func TestBatchesAreStructured(t *testing.T) {
	err := Config{URL: "http://a", Format: sinks.FormatRaw, Batch: Batch{MaxEvents: 2}}.Validate()
	if err == nil || !strings.Contains(err.Error(), "batch.max_events: a request of several events is always structured") {
		t.Errorf("Validate: %v", err)
	}
}

// What was acknowledged behind an event that fails is not repeated when it comes again
// in smaller batches.
func TestEarlyEventsAreRememberedOverSmallerBatches(t *testing.T) {
	counts := map[string]int{}
	fail := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("webhook-id")
		counts[id]++
		if id == "a1" && fail {
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	s, err := New(Config{URL: server.URL}, "pager", "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.early[earlyKey(&listener.Event{ID: "b1"})], s.early[earlyKey(&listener.Event{ID: "b2"})] = true, true
	a, b1, b2 := listener.Event{ID: "a1", QueryID: "a"}, listener.Event{ID: "b1", QueryID: "b"}, listener.Event{ID: "b2", QueryID: "b"}
	deliver := func(want int, events ...listener.Event) {
		t.Helper()
		if n, _ := s.Deliver(context.Background(), events); n != want {
			t.Errorf("acknowledged %d of %d, want %d", n, len(events), want)
		}
	}
	deliver(0, a, b1)
	deliver(0, a)
	deliver(1, b1)
	deliver(1, b2)
	fail = false
	deliver(1, a)
	if counts["b1"] != 0 || counts["b2"] != 0 || counts["a1"] != 3 || len(s.early) != 0 {
		t.Errorf("requests %v, remembered %v", counts, s.early)
	}
	replayed := b1
	replayed.Replay = "r1"
	deliver(1, replayed)
	if counts["b1"] != 1 {
		t.Errorf("a replay was taken for a repeat: %v", counts)
	}
}
