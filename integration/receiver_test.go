//go:build integration

package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"sparkbridge/integration/servers"
)

// webhookSink is an HTTP server that keeps what is posted to it. It serves once it is opened.
func webhookSink(t *testing.T, name string) *sink {
	port, err := servers.FreePort()
	requireNoError(t, err)
	address := fmt.Sprintf("127.0.0.1:%d", port)
	s := &sink{inbox: newInbox(), name: name}
	s.config = map[string]any{"name": name, "retry": impatient, "webhook": map[string]any{"url": "http://" + address + "/events"}}
	s.open = func() {
		listener, err := net.Listen("tcp", address)
		requireNoError(t, err)
		server := &http.Server{Handler: receiver{t, s.inbox}}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		t.Cleanup(func() {
			requireNoError(t, server.Close())
			if err := <-served; !errors.Is(err, http.ErrServerClosed) {
				t.Error(err)
			}
		})
	}
	return s
}

// receiver takes structured CloudEvents.
type receiver struct {
	t     *testing.T
	inbox *inbox
}

func (r receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the bridge was killed while it sent
	}
	if media, _, _ := strings.Cut(request.Header.Get("Content-Type"), ";"); media != "application/cloudevents+json" || request.Method != http.MethodPost {
		r.t.Errorf("webhook got a %s of %q", request.Method, request.Header.Get("Content-Type"))
	}
	a, err := structured(body)
	if err != nil {
		r.t.Errorf("webhook: %v in %.500s", err, body)
		return
	}
	a.place, a.key = request.URL.Path, decoded(r.t, request.Header.Get("webhook-id"))
	r.inbox.add(a)
	w.WriteHeader(http.StatusNoContent)
}

// structured reads an event in the JSON format of CloudEvents: strings, and the payload as data.
func structured(document []byte) (arrival, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(document, &members); err != nil {
		return arrival{}, err
	}
	a := arrival{attributes: map[string]string{}}
	for name, value := range members {
		if name == "data" {
			a.payload = value
			continue
		}
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			return arrival{}, fmt.Errorf("attribute %s: %w", name, err)
		}
		a.attributes[name] = text
	}
	return a, nil
}
