//go:build integration

package integration

import (
	"fmt"
	"testing"

	"sparkbridge/listener"
)

// Spark itself drops events, and tells nobody, when its queue of them is full. What is missing
// on the bus is asked for and put in its place.
func TestSparkDropsEvents(t *testing.T) {
	t.Parallel()
	const source, queries, lost = "dropped", 6, 5
	spark := startSpark(t, "4.2", map[string]string{"spark.scheduler.listenerbus.eventqueue.streams.capacity": "1"})
	session := openSession(t, spark, "--trigger", "100 milliseconds")
	sink := opened(webhookSink(t, "webhook"))[0]
	wire := tapWire(t, spark.Remote())
	config := configure(t, source, wire.remote(session.id), sink)
	bridge := startBridge(t, source, config)
	bridge.attached(0)
	var kinds []string
	for n := range queries {
		kind := fmt.Sprintf("healthy%d", n)
		kinds = append(kinds, kind)
		session.start(kind)
	}
	again(t, "events that are on no wire", func() bool {
		return len(session.inLog())-len(session.runs)-len(wire.events(t)) >= lost // a start is on no wire
	})
	session.stop(kinds...)
	came := finish(t, bridge, source, config.journal(), sink, account{session: session, idles: true})
	if came[listener.OriginBus] == 0 || came[listener.OriginBackfill] == 0 {
		t.Errorf("progress came by %v, want some by the bus and some asked for", came)
	}
}
