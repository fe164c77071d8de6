//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"
)

// arrival is one delivery of an event, in the same form for every kind of sink.
type arrival struct {
	place      string            // NATS subject, Kafka topic, path of the webhook
	key        string            // Nats-Msg-Id, Kafka's record key, webhook-id
	attributes map[string]string // of the CloudEvent, datacontenttype among them
	payload    []byte
}

func (a arrival) id() string   { return a.attributes["id"] }
func (a arrival) kind() string { return kindOfType(a.attributes["type"]) }

// same says whether two arrivals are repeats of one event.
func (a arrival) same(b arrival) bool {
	return a.key == b.key && a.place == b.place && maps.Equal(a.attributes, b.attributes) && bytes.Equal(a.payload, b.payload)
}

// inbox is what has arrived at a sink, in order.
type inbox struct {
	mu       sync.Mutex
	arrivals []arrival
	changed  chan struct{} // closed, and replaced, by each arrival
}

func newInbox() *inbox { return &inbox{changed: make(chan struct{})} }

func (i *inbox) add(a arrival) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.arrivals = append(i.arrivals, a)
	close(i.changed)
	i.changed = make(chan struct{})
}

// all returns what has arrived, and what is closed when there is more.
func (i *inbox) all() ([]arrival, <-chan struct{}) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.arrivals[:len(i.arrivals):len(i.arrivals)], i.changed
}

// count is how many arrivals match.
func (i *inbox) count(match func(arrival) bool) (n int) {
	arrivals, _ := i.all()
	for _, a := range arrivals {
		if match(a) {
			n++
		}
	}
	return n
}

// awaitCount waits for so many arrivals that match.
func (i *inbox) awaitCount(t *testing.T, what string, n int, match func(arrival) bool) {
	t.Helper()
	i.await(t, what, func([]arrival) []string {
		if have := i.count(match); have < n {
			return []string{fmt.Sprintf("%d more", n-have)}
		}
		return nil
	})
}

// await waits until missing finds nothing to name.
func (i *inbox) await(t *testing.T, sink string, missing func([]arrival) []string) []arrival {
	t.Helper()
	ctx := within(t, patience)
	for {
		arrivals, changed := i.all()
		lacking := missing(arrivals)
		if len(lacking) == 0 {
			return arrivals
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%s: %v; of %d events it lacks %d: %.2000q", sink, context.Cause(ctx), len(arrivals), len(lacking), lacking)
		}
	}
}

// again calls ask until it is content.
func again(t *testing.T, what string, ask func() bool) {
	t.Helper()
	ctx := within(t, patience)
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for !ask() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("await %s: %v", what, context.Cause(ctx))
		}
	}
}
