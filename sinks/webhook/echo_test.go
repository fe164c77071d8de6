package webhook_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sparkbridge/sinks"
	"sparkbridge/sinks/webhook"
)

// A receiver that repeats what it refuses tells nobody else what it has been told.
func TestAnEchoIsHidden(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		user, password, _ := r.BasicAuth()
		fmt.Fprintf(w, `{"path":"%s","query":"%s","authorization":"%s","key":"%s","user":"%s","password":"%s","filler":"%s","again":"%s","token":"%s"}`,
			r.URL.Path, r.URL.RawQuery, r.Header.Get("Authorization"), r.Header.Get("X-Key"), user, password, strings.Repeat(".", 60), r.URL.Path, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	for name, cfg := range map[string]webhook.Config{
		"url":    {URL: "http://etl:hunter2-pw@" + host + "/hook/hunter2-path?k=hunter2-query"},
		"bearer": {URL: server.URL + "/hunter2-path", Bearer: "hunter2-bearer"},
		"basic":  {URL: server.URL, Basic: webhook.Basic{User: "etl", Password: "hunter2-pw"}},
		"header": {URL: server.URL, Headers: map[string]sinks.Secret{"x-key": "hunter2-key", "Authorization": "Token hunter2-token"}},
	} {
		sink, err := webhook.New(cfg, "test", "0", slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer sink.Close()
		_, err = sink.Deliver(t.Context(), events(1, "q"))
		const pair = "ZXRsOmh1bnRlcjItcH" // of etl and hunter2-pw
		if err == nil || !strings.Contains(err.Error(), `422 Unprocessable Entity: {"path":"`) || !strings.Contains(err.Error(), "***") {
			t.Errorf("%s: %v", name, err)
		} else if text := err.Error(); strings.Contains(text, "hunter2") || strings.Contains(text, pair) {
			t.Errorf("%s: a credential shows: %v", name, err)
		}
	}
}
