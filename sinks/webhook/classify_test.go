package webhook_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sparkbridge/sinks"
	"sparkbridge/sinks/webhook"
)

// The table of answers.
func TestWhatAnswersMean(t *testing.T) {
	for code, want := range map[int]string{
		200: "ok", 201: "ok", 202: "ok", 204: "ok", 299: "ok",
		301: "retried", 302: "retried", 303: "retried", 304: "retried", 307: "retried", 308: "retried",
		400: "permanent", 401: "retried", 403: "retried", 404: "retried", 405: "permanent", 407: "retried", 408: "retried", 409: "permanent",
		410: "stopped", 413: "permanent", 415: "permanent", 422: "permanent", 425: "retried", 429: "retried", 451: "permanent",
		500: "retried", 501: "retried", 502: "retried", 503: "retried", 504: "retried", 599: "retried",
	} {
		sink, _ := serve(t, webhook.Config{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) })
		_, err := sink.Deliver(t.Context(), events(1, "q"))
		got := "retried"
		switch {
		case err == nil:
			got = "ok"
		case sinks.IsPermanent(err):
			got = "permanent"
		case sinks.IsStopped(err):
			got = "stopped"
		}
		if got != want {
			t.Errorf("%d is %s, want %s: %v", code, got, want, err)
		}
		for c, next := range map[int]string{401: "correct bearer", 403: "let the bridge post", 404: "correct url", 407: "HTTPS_PROXY", 410: "start the bridge anew"} {
			if c == code && !strings.Contains(err.Error(), next) {
				t.Errorf("%d does not say %s: %v", code, next, err)
			}
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for _, c := range []struct {
		code       int
		header     string
		from, most time.Duration // 0, 0: nothing is asked for
	}{
		{429, "7", 7 * time.Second, 7 * time.Second},
		{503, "120", 2 * time.Minute, 2 * time.Minute},
		{429, "99999999", time.Hour, time.Hour},
		{503, time.Now().Add(10 * time.Minute).UTC().Format(http.TimeFormat), 5 * time.Minute, 10 * time.Minute},
		{503, time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat), 0, 0},
		{429, "soon", 0, 0}, {429, "-3", 0, 0}, {429, "", 0, 0}, {422, "7", 0, 0},
	} {
		sink, _ := serve(t, webhook.Config{}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", c.header)
			w.WriteHeader(c.code)
		})
		_, err := sink.Deliver(t.Context(), events(1, "q"))
		var later *sinks.RetryAfterError
		var status *webhook.StatusError
		if !errors.As(err, &status) || errors.As(err, &later) != (c.most > 0) {
			t.Errorf("%q of %d: %v", c.header, c.code, err)
		} else if c.most > 0 && (later.After < c.from || later.After > c.most) {
			t.Errorf("%q of %d asks for %s", c.header, c.code, later.After)
		}
	}
}

// record answers by id, and remembers what was posted.
type record struct {
	mu    sync.Mutex
	ids   []string
	codes map[string]int
}

func (r *record) answer(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id := req.Header.Get("webhook-id")
	r.ids = append(r.ids, id)
	if code := r.codes[id]; code != 0 {
		w.WriteHeader(code)
	}
}

// An event that is refused stops its own query only, and the error is told when
// that event is the first one left.
func TestRefusedEventStopsItsQueryOnly(t *testing.T) {
	r := &record{codes: map[string]int{"b:progress:1": 422}}
	sink, _ := serve(t, webhook.Config{}, r.answer)
	all := events(3, "a", "b", "c") // a0 b0 c0 a1 b1 …
	acked, err := sink.Deliver(t.Context(), all)
	if acked != 4 || !sinks.IsPermanent(err) {
		t.Fatalf("%d acknowledged, %v", acked, err)
	}
	if slices.Contains(r.ids, "b:progress:2") || len(r.ids) != 8 {
		t.Errorf("posted %q", r.ids)
	}
	r.codes, r.ids = nil, nil
	if acked, err := sink.Deliver(t.Context(), all[acked:]); acked != 5 || err != nil || !slices.Equal(r.ids, []string{"b:progress:1", "b:progress:2"}) {
		t.Errorf("%d acknowledged, %v, posted %q", acked, err, r.ids)
	}
}

// Where the first event left has failed otherwise, nothing is said of another one.
func TestRefusalIsNotBlamedOnAnotherEvent(t *testing.T) {
	r := &record{codes: map[string]int{"a:progress:0": 503, "b:progress:0": 422}}
	sink, _ := serve(t, webhook.Config{}, r.answer)
	acked, err := sink.Deliver(t.Context(), events(1, "a", "b"))
	var status *webhook.StatusError
	if acked != 0 || sinks.IsPermanent(err) || !errors.As(err, &status) || status.Code != 503 {
		t.Errorf("%d acknowledged, %v", acked, err)
	}
}
