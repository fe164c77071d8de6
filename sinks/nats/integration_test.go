//go:build integration

package nats

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

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
	var done atomic.Int64
	var killing sync.WaitGroup
	killing.Go(func() {
		for k := range int64(kills) {
			for done.Load() < (k+1)*total/(kills+1) && t.Context().Err() == nil {
				<-time.After(time.Millisecond)
			}
			<-time.After(rand.N(10 * time.Millisecond)) // at any place of a window
			server.Kill()
			restart(t, server)
		}
	})
	for part := range slices.Chunk(events, maxWindow) {
		deliverAll(t.Context(), t, sink, part)
		done.Add(int64(len(part)))
	}
	killing.Wait()
	stored, err := readStream(t.Context(), server.jetstream(t))
	if err != nil {
		t.Fatal(err)
	}
	wantOrder(t, ids(stored), events)
}
