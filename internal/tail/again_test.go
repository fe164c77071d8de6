package tail

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A stream that breaks before its first event goes on from where it began.
func TestFollowGoesOnFromTheStart(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Last-Event-ID"))
		fmt.Fprint(w, ": hello\nid: 41\n\n")
		if len(asked) > 1 {
			fmt.Fprint(w, "id: 42\ndata: {}\n\n")
		}
	}))
	defer server.Close()
	b := &Bridge{URL: server.URL, HTTP: server.Client(), Log: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(t.Context())
	err := b.Follow(ctx, func([]byte) error { stop(); return nil })
	if err != nil || len(asked) != 2 || asked[1] != "41" {
		t.Errorf("%v; asked from %q", err, asked)
	}
}

// A bridge that ends before it has answered is no bridge that is not there.
func TestFollowOutlivesABridgeThatEnds(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, "id: 1\ndata: {}\n\n")
	}))
	defer server.Close()
	b := &Bridge{URL: server.URL, HTTP: server.Client(), Log: slog.New(slog.DiscardHandler)}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	taken := 0
	if err := b.Follow(ctx, func([]byte) error { taken++; stop(); return nil }); err != nil || taken != 1 {
		t.Errorf("%v; %d taken", err, taken)
	}
}
