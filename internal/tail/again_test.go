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
