//go:build integration

package integration

import (
	"testing"
	"time"

	"sparkbridge/listener"
)

// When another client has removed the bridge's listener, the bridge leaves it ten seconds to add
// one of its own, takes the bus back, and asks for what has happened meanwhile.
func TestRemovedBusIsTakenBack(t *testing.T) {
	t.Parallel()
	const source = "removed"
	session := openSession(t, shared.spark42.get(t))
	sink := opened(webhookSink(t, "webhook"))[0]
	wire := tapWire(t, session.spark.Remote())
	config := configure(t, source, wire.remote(session.id), sink)
	config.source()["attach"] = "first_query"
	bridge := startBridge(t, source, config)
	bridge.await("that it waits for a query", 0, isBus("waiting", "first_query"))
	if adds, _ := wire.busCommands(t); len(adds) > 0 {
		t.Error("the bridge took the bus of a session without a query")
	}
	run := session.start("healthy")
	session.start("idle")
	bridge.attached(0)
	sink.awaitCount(t, "events", 3, progressOf(run))

	lines, _ := bridge.said.all()
	requireNoError(t, client(t, session.spark, session.id).RemoveListener(within(t, patience)))
	removed := time.Now()
	bridge.await("that the bus is lost", len(lines), isBus("lost", "removed"))
	bridge.attached(len(lines))
	if pause := time.Since(removed); pause < 10*time.Second {
		t.Errorf("the bridge took the bus back after %s, want that it waits for 10s", pause)
	}
	batchesFor(session, run, time.Second)
	session.stop("healthy", "idle")
	came := finish(t, bridge, source, config.journal(), sink, account{session: session, idles: true})
	if came[listener.OriginBus] == 0 || came[listener.OriginBackfill] == 0 {
		t.Errorf("progress came by %v, want some by the bus and some asked for", came)
	}
	if adds, removes := wire.busCommands(t); len(adds) != 2 || removes != 1 {
		t.Errorf("the bridge sent %d ADD and %d REMOVE, want two, and one at its end", len(adds), removes)
	}
}

// An owner that removes the bridge's listener and adds its own gets all that it is promised by
// Spark. The bridge polls, and loses nothing either.
func TestOwnerTakesTheBus(t *testing.T) {
	t.Parallel()
	const source = "owner"
	session := openSession(t, shared.spark42.get(t))
	owner := startOwner(session, "--later")
	sink := opened(webhookSink(t, "webhook"))[0]
	wire := tapWire(t, session.spark.Remote())
	config := configure(t, source, wire.remote(session.id), sink)
	bridge := startBridge(t, source, config)
	bridge.attached(0)
	run := session.start("healthy")
	sink.awaitCount(t, "events", 3, progressOf(run))

	requireNoError(t, client(t, session.spark, session.id).RemoveListener(within(t, patience)))
	owner.do("hold", "held")
	bridge.await("that the bus is taken", 0, isBus("taken", ""))
	bridge.await("that the session is polled", 0, isBus("polling", ""))
	second := session.start("unnamed")
	batchesFor(session, second, time.Second)
	session.stop("healthy", "unnamed")
	owner.checkHeard(session, second)
	came := finish(t, bridge, source, config.journal(), sink, account{session: session, idles: true})
	if came[listener.OriginBus] == 0 || came[listener.OriginPoll] == 0 {
		t.Errorf("progress came by %v, want some by the bus and some by polling", came)
	}
	if adds, removes := wire.busCommands(t); len(adds) < 2 || removes != 0 {
		t.Errorf("the bridge sent %d ADD and %d REMOVE, want two, or more if this took minutes, and none", len(adds), removes)
	}
}
