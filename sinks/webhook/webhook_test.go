package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks/webhook"
)

// events makes n events of each query, mixed.
func events(n int, queries ...string) []listener.Event {
	var out []listener.Event
	for i := range n {
		for _, q := range queries {
			out = append(out, listener.Event{
				Sequence: uint64(len(out) + 1), ID: fmt.Sprintf("%s:progress:%d", q, i), Kind: listener.KindProgress,
				Source: "etl", QueryID: q, RunID: q, BatchID: int64(i), Payload: []byte(`{}`),
			})
		}
	}
	return out
}

// serve starts a real server; answer is called for each event's id.
func serve(t *testing.T, cfg webhook.Config, answer func(w http.ResponseWriter, r *http.Request)) (*webhook.Sink, *httptest.Server) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(server.Close)
	cfg.URL = strings.Replace(server.URL, "http://", "http://user:secret@", 1) + "/hook/secret?token=secret"
	return newSink(t, cfg), server
}

func TestRequest(t *testing.T) {
	before := time.Now().Unix()
	sink, _ := serve(t, webhook.Config{}, func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		sent, _ := strconv.ParseInt(r.Header.Get("webhook-timestamp"), 10, 64)
		switch {
		case r.Method != http.MethodPost || r.URL.String() != "/hook/secret?token=secret":
			t.Errorf("%s %s", r.Method, r.URL)
		case user != "user" || password != "secret":
			t.Errorf("authentication %q %q", user, password)
		case r.Header.Get("User-Agent") != "sparkbridge/1.2.3":
			t.Errorf("user agent %q", r.Header.Get("User-Agent"))
		case r.Header.Get("Content-Type") != "application/cloudevents+json; charset=utf-8":
			t.Errorf("content type %q", r.Header.Get("Content-Type"))
		case r.Header.Get("webhook-id") != "q:progress:0":
			t.Errorf("webhook-id %q", r.Header.Get("webhook-id"))
		case sent < before || sent > time.Now().Unix():
			t.Errorf("webhook-timestamp %d", sent)
		}
		w.WriteHeader(http.StatusAccepted)
	})
	if acked, err := sink.Deliver(t.Context(), events(1, "q")); acked != 1 || err != nil {
		t.Errorf("%d, %v", acked, err)
	}
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		code     int
		body     string
		location string
		want     string // after "post event to http://host/…: answered "
	}{
		{500, "", "", "500 Internal Server Error"},
		{422, "no\nsuch\t\x1b[31m field \xff" + strings.Repeat("x", 10_000), "", "422 Unprocessable Entity: no such [31m field xxx"},
		{301, "", "/hook/secret?token=secret", "301 Moved Permanently, a redirect to http://host/…, which is not followed; set url to the final address"},
		{307, "", "https://user:secret@other.example/", "307 Temporary Redirect, a redirect to https://other.example/…, which is not followed"},
		{304, "", "", "304 Not Modified"},
		{410, "closed\ndown", "", "410 Gone; the receiver wants no more events, so nothing is sent any more: take this sink out, or correct url or what answers there and start the bridge anew: closed down"},
	} {
		sink, server := serve(t, webhook.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			if c.location != "" {
				w.Header().Set("Location", c.location)
			}
			w.WriteHeader(c.code)
			_, _ = io.WriteString(w, c.body)
		})
		acked, err := sink.Deliver(t.Context(), events(3, "q"))
		var status *webhook.StatusError
		if acked != 0 || !errors.As(err, &status) || status.Code != c.code {
			t.Fatalf("answer %d: %d acknowledged, error %v", c.code, acked, err)
		}
		got := strings.ReplaceAll(err.Error(), server.Listener.Addr().String(), "host")
		if !strings.HasPrefix(got, "post event to http://host/…: answered "+c.want) || len(got) > 400 || strings.Contains(got, "secret") {
			t.Errorf("answer %d: %s", c.code, got)
		}
	}
}

func TestErrorsHideTheAddress(t *testing.T) {
	sink, server := serve(t, webhook.Config{}, func(http.ResponseWriter, *http.Request) {})
	server.Close()
	_, err := sink.Deliver(t.Context(), events(1, "q"))
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("error %v", err)
	}
}

func TestTimeout(t *testing.T) {
	release := make(chan struct{})
	sink, _ := serve(t, webhook.Config{Timeout: 50 * time.Millisecond}, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) })
	acked, err := sink.Deliver(t.Context(), events(1, "q"))
	if acked != 0 || err == nil || !strings.Contains(err.Error(), "no answer in time (50ms; raise timeout") {
		t.Errorf("%d, %v", acked, err)
	}
}

// A connection is used again whatever its last answer was.
func TestKeepsConnections(t *testing.T) {
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.Header.Get("webhook-id"), "sick") {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, strings.Repeat("an answer of some length ", 1000))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	sink := newSink(t, webhook.Config{URL: server.URL})
	for range 5 {
		_, _ = sink.Deliver(t.Context(), events(1, "sick"))
		if _, err := sink.Deliver(t.Context(), events(20, "q")); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 1 {
		t.Errorf("%d connections for one query's events, want 1", n)
	}
}

// Every query's first request waits until eight queries are served at once.
func TestServesQueriesBesideEachOther(t *testing.T) {
	var first sync.WaitGroup
	first.Add(8)
	sink, _ := serve(t, webhook.Config{Timeout: time.Minute}, func(_ http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("webhook-id"), ":progress:0") {
			first.Done()
			first.Wait()
		}
	})
	batch := events(3, "a", "b", "c", "d", "e", "f", "g", "h")
	if acked, err := sink.Deliver(t.Context(), batch); acked != len(batch) || err != nil {
		t.Errorf("%d, %v", acked, err)
	}
}

// What was acknowledged behind a failed event is not sent again, and nothing of
// the failed event's query is sent before it.
func TestRetrySendsOnlyWhatIsOwed(t *testing.T) {
	var mu sync.Mutex
	var got []string
	failures := 2
	otherArrived := make(chan struct{})
	sink, _ := serve(t, webhook.Config{Timeout: time.Minute}, func(w http.ResponseWriter, r *http.Request) {
		id := r.Header.Get("webhook-id")
		if id == "bad:progress:1" {
			<-otherArrived
		}
		mu.Lock()
		defer mu.Unlock()
		if id == "bad:progress:1" && failures > 0 {
			failures--
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		got = append(got, id)
		if id == "good:progress:2" {
			close(otherArrived)
		}
	})
	batch := events(3, "bad", "good")
	var acks []int
	for rest := batch; len(rest) > 0; {
		acked, err := sink.Deliver(t.Context(), rest)
		if err == nil != (acked == len(rest)) {
			t.Fatalf("%d of %d, %v", acked, len(rest), err)
		}
		acks, rest = append(acks, acked), rest[acked:]
	}
	if !slices.Equal(acks, []int{2, 0, 4}) {
		t.Errorf("acknowledged %v, want two, then none, then the rest", acks)
	}
	slices.Sort(got)
	var want []string
	for _, e := range batch {
		want = append(want, e.ID)
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("received %q, want each event once", got)
	}
}

// After a failure no further request is begun.
func TestStopsAtAFailure(t *testing.T) {
	var requests atomic.Int32
	sink, _ := serve(t, webhook.Config{}, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	queries := make([]string, 100)
	for i := range queries {
		queries[i] = fmt.Sprint("q", i)
	}
	if acked, err := sink.Deliver(t.Context(), events(5, queries...)); acked != 0 || err == nil {
		t.Errorf("%d, %v", acked, err)
	}
	if n := requests.Load(); n > 8 {
		t.Errorf("%d requests to a server that is down, want at most one a lane", n)
	}
}

func TestCancelledBeforeAnythingIsSent(t *testing.T) {
	sink, _ := serve(t, webhook.Config{}, func(http.ResponseWriter, *http.Request) { t.Error("sent") })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if acked, err := sink.Deliver(ctx, events(2, "q")); acked != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d, %v", acked, err)
	}
}

// BenchmarkDeliver posts batches of 512 events of some queries to a server that
// needs a millisecond for each.
func BenchmarkDeliver(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		<-time.After(time.Millisecond)
	}))
	b.Cleanup(server.Close)
	for _, queries := range [][]string{{"a"}, {"a", "b", "c", "d"}, {"a", "b", "c", "d", "e", "f", "g", "h"}} {
		b.Run(fmt.Sprintf("queries=%d", len(queries)), func(b *testing.B) {
			sink := newSink(b, webhook.Config{URL: server.URL})
			batch := events(512/len(queries), queries...)
			for b.Loop() {
				if _, err := sink.Deliver(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(batch)*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
