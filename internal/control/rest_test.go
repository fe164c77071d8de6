package control

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"
)

// ServeHTTP is the rest: it answers with the path, and at /stream until it is told to end.
func (*stub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.WriteString(w, r.URL.Path)
	if r.URL.Path == "/stream" {
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func get(t *testing.T, dir, path string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	return HTTP(dir).Do(r)
}

// read returns the status and the body of an answer.
func read(t *testing.T, dir, path string) (int, string) {
	t.Helper()
	answer, err := get(t, dir, path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestProfilesAndTheRestAreOnTheSocket(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, newStub())
	if status, body := read(t, dir, "/metrics"); status != http.StatusOK || body != "/metrics" {
		t.Errorf("the rest: %d %s", status, body)
	}
	for path, part := range map[string]string{
		"/debug/pprof/":                   "goroutine",
		"/debug/pprof/goroutine?debug=2":  "TestProfilesAndTheRest",
		"/debug/pprof/heap":               "\x1f\x8b", // gzip, as go tool pprof reads it
		"/debug/pprof/cmdline":            "control",
		"/debug/pprof/trace?seconds=0.01": "go 1.",
		"/debug/pprof/profile?seconds=1":  "\x1f\x8b",
	} {
		if status, body := read(t, dir, path); status != http.StatusOK || !strings.Contains(body, part) {
			t.Errorf("%s: %d, %.80q", path, status, body)
		}
	}
}

// An answer that has no end does not hold up the end of the bridge.
func TestStreamsEndWithTheBridge(t *testing.T) {
	dir := t.TempDir()
	socket, err := Listen(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&Desk{Rest: newStub()}).Serve(ctx, socket, slog.New(slog.DiscardHandler)) }()
	answer, err := get(t, dir, "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	began := time.Now()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if body, err := io.ReadAll(answer.Body); string(body) != "/stream" || err != nil {
		t.Errorf("the stream ended with %q, %v: it was cut off", body, err)
	}
	if took := time.Since(began); took >= farewell {
		t.Errorf("it took %s", took)
	}
}
