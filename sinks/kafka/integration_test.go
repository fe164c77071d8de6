//go:build integration

package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"sparkbridge/listener"
	"sparkbridge/sinks"
	"sparkbridge/sinks/sinktest"
)

// TestKafka shares one broker among its parts, since starting one takes seconds.
func TestKafka(t *testing.T) {
	broker := startBroker(t)
	for name, run := range map[string]func(*testing.T, testBroker){
		"check":                      testCheckFindsTheTopicsAndMakesNone,
		"security":                   testSecurity,
		"topic on request":           testTopicOnRequest,
		"ambiguous":                  testCountsAmbiguous,
		"conformance":                testConformance,
		"order over kills":           testKeepsOrderOverKills,
		"unknown topic among others": testUnknownTopicAmongOthers,
		"cut to the topic's limit":   testCutsToTheTopicsLimit,
		"order after a late write":   testLateWriteKeepsOrder,
	} {
		t.Run(name, func(t *testing.T) { run(t, broker) })
	}
}

// Each kind of login is tried by TLS, and its clients are cut off at its door. What
// becomes of them when the broker itself is killed, testKeepsOrderOverKills tells.
func testConformance(t *testing.T, broker testBroker) {
	mutual := Config{Brokers: []string{broker.at("MUTUAL")}, TLS: broker.authority.Client(t, "bridge")}
	for name, c := range map[string]struct {
		cfg  Config
		door *sinktest.Proxy
	}{
		"plain":     {broker.user("plain"), broker.doors["SASLTLS"]},
		"scram 512": {broker.user("scram-sha-512"), broker.doors["SASLTLS"]},
		"mutual":    {mutual, broker.doors["MUTUAL"]},
	} {
		t.Run(name, func(t *testing.T) { conforms(t, broker, c.cfg, c.door) })
	}
}

// conforms runs the suite, each case with a topic of its own.
func conforms(t *testing.T, broker testBroker, cfg Config, door *sinktest.Proxy) {
	const partitions = 3
	sinktest.Run(t, func(t *testing.T) sinktest.Harness {
		topic := strings.NewReplacer("/", "-", "'", "").Replace(t.Name())
		createTopic(t, broker, topic, partitions)
		read := &reader{broker: broker.Brokers()[0], topic: topic, offsets: make([]int64, partitions)}
		return sinktest.Harness{
			New:      func(t testing.TB) sinks.Sink { return openAs(t, cfg, topic) },
			Received: read.all,
			Stop:     door.Stop, Start: door.Start,
			Freeze: door.Freeze, Thaw: door.Thaw,
			Slow:  door.Slow,
			Limit: 1_048_588,
		}
	})
}

// deliverAll delivers until all is acknowledged, as a worker would, and calls
// after with what is left.
func deliverAll(t *testing.T, sink *Sink, events []listener.Event, after func(left int)) {
	t.Helper()
	for len(events) > 0 {
		acked, err := sink.Deliver(t.Context(), events[:min(512, len(events))])
		events = events[acked:]
		if err != nil {
			select {
			case <-t.Context().Done():
				t.Fatalf("%d events left: %v", len(events), err)
			case <-time.After(20 * time.Millisecond):
			}
		}
		after(len(events))
	}
}

func testKeepsOrderOverKills(t *testing.T, broker testBroker) {
	const total, queries, partitions, kills = 20_000, 5, 3, 2
	createTopic(t, broker, "killed", partitions)
	events := make([]listener.Event, total)
	for i := range events {
		events[i] = progress(string(rune('a'+i%queries)), i/queries)
	}
	var killing sync.WaitGroup
	next := total - total/(kills+1)
	deliverAll(t, openAs(t, broker.user("scram-sha-512"), "killed"), events, func(left int) {
		if left > 0 && left < next { // while the next batch is written
			next -= total / (kills + 1)
			killing.Wait()
			killing.Go(func() { broker.Kill(); restart(t, broker) })
		}
	})
	killing.Wait()

	read := &reader{broker: broker.Brokers()[0], topic: "killed", offsets: make([]int64, partitions)}
	got, err := read.all(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantOrder(t, got, events)
	t.Logf("%d events, %d records", total, len(got))
}

// wantOrder checks that all events are there, and in which order they came first.
func wantOrder(t *testing.T, got []sinktest.Message, events []listener.Event) {
	t.Helper()
	at := make(map[string]int, len(got))
	for i, m := range got {
		if _, repeat := at[m.ID()]; !repeat {
			at[m.ID()] = i
		}
	}
	last := make(map[string]int)
	for i := range events {
		e := &events[i]
		place, found := at[e.ID]
		if !found {
			t.Fatalf("%s is lost", e.ID)
		}
		if before, seen := last[e.QueryID]; seen && place < before {
			t.Fatalf("%s came before an earlier event of its query", e.ID)
		}
		last[e.QueryID] = place
	}
}

func testUnknownTopicAmongOthers(t *testing.T, broker testBroker) {
	createTopic(t, broker, "query-a", 1)
	sink := openSink(t, broker, "query-{query}")
	events := []listener.Event{progress("a", 0), progress("a", 1), progress("b", 0), progress("a", 2)}
	acked, err := sink.Deliver(t.Context(), events)
	if acked != 2 || !errors.Is(err, kafka.UnknownTopicOrPartition) {
		t.Fatalf("acked %d, err %v", acked, err)
	}
	for _, part := range []string{"query-b", broker.at("PLAINTEXT"), "kafka-topics.sh"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not mention %q", err, part)
		}
	}
	createTopic(t, broker, "query-b", 1)
	deliverAll(t, sink, events[acked:], func(int) {})
}

func testCutsToTheTopicsLimit(t *testing.T, broker testBroker) {
	const limit = 20_000
	createTopic(t, broker, "small", 1, kafka.ConfigEntry{ConfigName: "max.message.bytes", ConfigValue: fmt.Sprint(limit)})
	event := progress("a", 0)
	event.Payload = []byte(`{"batchId":0,"text":"` + strings.Repeat("x", 100_000) + `"}`)
	events := []listener.Event{event}
	for n := range 100 { // more than one batch of that size
		events = append(events, progress("a", n+1))
	}
	for name, known := range map[string]int{"asked for": 0, "wrongly believed": 1 << 20} {
		sink := openSink(t, broker, "small")
		if known > 0 {
			sink.limits.set("small", known)
		}
		if acked, err := sink.Deliver(t.Context(), events); acked != len(events) || err != nil {
			t.Fatalf("limit %s: acked %d, err %v", name, acked, err)
		}
	}
	read := &reader{broker: broker.Brokers()[0], topic: "small", offsets: make([]int64, 1)}
	got, err := read.all(t.Context())
	if err != nil || len(got) != 2*len(events) {
		t.Fatalf("%d records, err %v", len(got), err)
	}
	if size := len(got[0].Payload); got[0].Attributes["sparktruncated"] != "true" || size > limit || size < limit/2 {
		t.Errorf("a payload of %d bytes, attributes %v", size, got[0].Attributes)
	}
}

func testLateWriteKeepsOrder(t *testing.T, broker testBroker) {
	createTopic(t, broker, "late", 1)
	sink := openSink(t, broker, "late")
	var events []listener.Event
	for n := range 100 {
		events = append(events, progress("a", n))
	}
	deliverAll(t, sink, events[:1], func(int) {})
	broker.Pause()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	acked, err := sink.Deliver(ctx, events[1:50])
	if acked != 0 || !errors.Is(err, context.Canceled) {
		t.Fatalf("acked %d, err %v", acked, err)
	}
	broker.Resume()
	deliverAll(t, sink, events[1:3], func(int) {}) // less than what was left behind
	deliverAll(t, sink, events[3:], func(int) {})
	read := &reader{broker: broker.Brokers()[0], topic: "late", offsets: make([]int64, 1)}
	got, err := read.all(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantOrder(t, got, events)
}
