package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// A bridge that is asked by HTTP and does not answer with events: what to do is told.
func TestTailTellsWhatToDo(t *testing.T) {
	for status, want := range map[int]string{
		http.StatusUnauthorized: "put it into BRIDGE_TOKEN",
		http.StatusNotFound:     "--url must be where a bridge serves HTTP",
		http.StatusBadRequest:   "",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "as it is", status) }))
		defer server.Close()
		var out, errs bytes.Buffer
		if code := execute(nil, []string{"tail", "--url", server.URL}, &out, &errs); code != 1 || !strings.Contains(errs.String(), "as it is"+map[bool]string{true: ": "}[want != ""]+want) {
			t.Errorf("%d: exit code %d, %s", status, code, &errs)
		}
	}
}
