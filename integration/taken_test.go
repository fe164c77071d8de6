//go:build integration

package integration

import (
	"testing"

	"sparkbridge/integration/servers"
)

// A bus that another client holds is left to it: its listener goes on. The bridge says so,
// once, and takes the bus when it has become free.
func TestTakenBusIsLeftAlone(t *testing.T) {
	t.Parallel() // it waits most of the time
	const source = "taken"
	spark := shared.spark42.get(t)
	session := openSession(t, spark)
	holder, err := servers.RunJob(t.Context(), spark, servers.JobOptions{Script: "hold_bus.py", User: user, ID: session.id})
	requireNoError(t, err)
	stopAtEnd(t, holder)
	holds := func(match func(servers.Fact) bool) {
		t.Helper()
		_, err := holder.Await(within(t, patience), match)
		requireNoError(t, err)
	}
	holds(func(f servers.Fact) bool { return f.Fact == "held" })

	sink := opened(webhookSink(t, "webhook"))[0]
	wire := tapWire(t, spark.Remote())
	bridge := startBridge(t, source, configure(t, source, wire.remote(session.id), sink))
	bridge.await("that the bus is taken", 0, isBus("taken", "another client holds the bus"))
	run := session.start("healthy")
	holds(func(f servers.Fact) bool { return f.Fact == "progress" && f.RunID == run.RunID })
	session.stop("healthy")
	holds(func(f servers.Fact) bool { return f.Fact == "terminated" && f.RunID == run.RunID })
	if _, removes := wire.busCommands(t); removes != 0 {
		t.Error("the bridge removed the holder's listener")
	}
	if n := sink.count(func(a arrival) bool { return a.attributes["sparkrunid"] == run.RunID && a.kind() != "started" }); n > 0 {
		t.Errorf("%d events came to the bridge, whose bus is taken", n)
	}

	requireNoError(t, holder.Send("release"))
	holds(func(f servers.Fact) bool { return f.Fact == "released" })
	bridge.attached(0)
	second := session.start("unnamed")
	sink.awaitCount(t, "events of the freed bus", 3, progressOf(second))
	session.stop("unnamed")
	if n := bridge.said.count(isBus("taken", "")); n != 1 {
		t.Errorf("the bridge said %d times that the bus is taken, want once", n)
	}
	bridge.stop()
	if adds, removes := wire.busCommands(t); len(adds) < 2 || removes != 1 {
		t.Errorf("the bridge sent %d ADD and %d REMOVE, want at least two, and one at its end", len(adds), removes)
	}
}
