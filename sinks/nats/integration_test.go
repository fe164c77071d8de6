//go:build integration

package nats

import (
	"sync"
	"testing"

	"sparkbridge/listener"
)

// Unlike a server that stops, one that is killed leaves messages half read and
// acknowledgements unsent.
func TestKeepsOrderOverKills(t *testing.T) {
	const total, queries, kills = 20_000, 5, 4
	server := startGuarded(t, "creds", true)
	newStream(t, server.jetstream(t))
	events := make([]listener.Event, total)
	for i := range events {
		events[i] = progress(string(rune('a'+i%queries)), i/queries)
	}
	cfg := server.sink
	cfg.URL, cfg.JetStream = server.URL(), true
	sink := newSink(t, cfg)
	var killing sync.WaitGroup
	for part := range kills + 1 {
		deliverAll(t.Context(), t, sink, events[part*total/(kills+1):(part+1)*total/(kills+1)])
		killing.Wait()
		if part < kills {
			killing.Go(func() { server.Kill(); restart(t, server) })
		}
	}
	stored, err := readStream(t.Context(), server.jetstream(t))
	if err != nil {
		t.Fatal(err)
	}
	wantOrder(t, ids(stored), events)
}
