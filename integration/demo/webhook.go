package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// webhook is an HTTP server that takes events.
type webhook struct {
	server *http.Server
	url    string
	served chan struct{}
}

// startWebhook gives each event that is posted to receive, before it answers; receive may be
// called by several goroutines at once.
func startWebhook(receive func(event)) (*webhook, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the webhook: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /events", func(w http.ResponseWriter, r *http.Request) { take(w, r, receive) })
	h := &webhook{
		server: &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second},
		url:    "http://" + listener.Addr().String() + "/events",
		served: make(chan struct{}),
	}
	go func() {
		defer close(h.served)
		_ = h.server.Serve(listener) // ends by stop
	}()
	return h, nil
}

func (h *webhook) stop() {
	_ = h.server.Close()
	<-h.served
}

// take reads an event in the structured mode of CloudEvents: one JSON document.
func take(w http.ResponseWriter, r *http.Request, receive func(event)) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender is gone, and will send it again
	}
	var e event
	if err := json.Unmarshal(body, &e); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	receive(e)
	w.WriteHeader(http.StatusNoContent)
}
