//go:build integration

package nats

import (
	"context"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/integration/servers"
	"sparkbridge/listener"
)

// Unlike a server that stops, one that is killed leaves messages half read and
// acknowledgements unsent.
func TestKeepsOrderOverKills(t *testing.T) {
	const total, queries = 100_000, 5
	process, err := servers.StartNATS(t.Context(), servers.NATSOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	createStream(t, process.URL())
	events := make([]listener.Event, total)
	for i := range events {
		events[i] = progress(string(rune('a'+i%queries)), i/queries)
	}
	sink := newSink(t, Config{URL: process.URL(), JetStream: true})
	var kills sync.WaitGroup
	for part := range 5 {
		deliverAll(t.Context(), t, sink, events[part*total/5:(part+1)*total/5])
		kills.Wait()
		if part < 4 {
			kills.Go(func() {
				process.Kill()
				if err := process.Restart(context.Background()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	stored, err := readStream(t.Context(), connectTo(t, process.URL()))
	if err != nil {
		t.Fatal(err)
	}
	wantOrder(t, ids(stored), events)
}

func connectTo(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func createStream(t *testing.T, url string) {
	t.Helper()
	if _, err := connectTo(t, url).CreateStream(t.Context(), jetstream.StreamConfig{Name: "spark", Subjects: []string{"spark.>"}}); err != nil {
		t.Fatal(err)
	}
}
