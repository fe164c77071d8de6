//go:build integration

package integration

import (
	"slices"
	"testing"
	"time"

	"sparkbridge/integration/servers"
	"sparkbridge/listener"
)

// progressOf matches the progress events of a run.
func progressOf(run servers.Fact) func(arrival) bool {
	return func(a arrival) bool { return a.kind() == "progress" && a.attributes["sparkrunid"] == run.RunID }
}

// After SIGTERM the bus is free: another bridge gets it with its first ADD, without removing
// anybody.
func TestCleanStopFreesTheBus(t *testing.T) {
	spark, _, _ := shared.all(t)
	session := openSession(t, spark)
	var run servers.Fact
	for _, source := range []string{"first", "second"} {
		sink := opened(webhookSink(t, "webhook"))[0]
		wire := tapWire(t, spark.Remote())
		bridge := startBridge(t, source, configure(t, source, wire.remote(session.id), sink))
		bridge.attached(0)
		if run.RunID == "" {
			run = session.start("healthy")
		}
		sink.awaitCount(t, "events of the "+source+" bridge", 3, progressOf(run))
		if _, removes := wire.busCommands(t); removes != 0 {
			t.Errorf("the %s bridge removed a listener before it stopped", source)
		}
		bridge.stop()
		if adds, removes := wire.busCommands(t); len(adds) != 1 || removes != 1 {
			t.Errorf("the %s bridge sent %d ADD and %d REMOVE, want one of each", source, len(adds), removes)
		}
		if n := bridge.said.count(isBus("taken", "")); n > 0 {
			t.Errorf("the %s bridge found the bus taken", source)
		}
	}
}

// With on_stop: keep the operation stays, and a restart reads on in it: nothing that happened
// in between is lost.
func TestKeptBusIsResumed(t *testing.T) {
	const source = "keep"
	spark, _, _ := shared.all(t)
	session := openSession(t, spark)
	sink := opened(webhookSink(t, "webhook"))[0]
	wire := tapWire(t, spark.Remote())
	config := configure(t, source, wire.remote(session.id), sink)
	config.source()["on_stop"] = "keep"
	bridge := startBridge(t, source, config)
	bridge.attached(0)
	run := session.start("healthy")
	sink.awaitCount(t, "events", 3, progressOf(run))
	bridge.stop()

	missed := sink.count(progressOf(run))
	again(t, "batches while the bridge is away", func() bool { return session.countInLog("progress", run) >= missed+5 })
	lines, _ := bridge.said.all()
	requireNoError(t, bridge.Restart(t.Context()))
	bridge.attached(len(lines))
	session.stop("healthy")
	want := session.logged()
	checkDeliveries(t, "webhook", want, sink.await(t, "webhook", lacks(want)))
	adds, removes := wire.busCommands(t)
	if len(adds) != 1 || removes != 0 || !slices.Equal(wire.reattached(t), adds) {
		t.Errorf("the bridge added %q, removed %d, and read on in %q; want one addition, and to read on in it", adds, removes, wire.reattached(t))
	}
	bridge.stop()
	events := journaled(t, config.journal())
	checkJournal(t, want, events)
	checkWire(t, wire.events(t), events)
}

// When Spark dies, the runs of its driver end. The bridge waits for the server, then for the
// session, and goes on.
func TestSparkRestarts(t *testing.T) {
	const source = "restart"
	spark, _, _ := shared.all(t)
	session := openSession(t, spark)
	sink := opened(webhookSink(t, "webhook"))[0]
	config := configure(t, source, spark.Session(user, session.id), sink)
	bridge := startBridge(t, source, config)
	bridge.attached(0)
	before := session.start("healthy")
	sink.awaitCount(t, "events before", 3, progressOf(before))

	lines, _ := bridge.said.all()
	began := time.Now()
	spark.Kill()
	session.job.Kill()
	bridge.await("that Spark does not answer", len(lines), isSaid("spark connect does not answer, trying again", ""))
	requireNoError(t, spark.Restart(t.Context()))
	bridge.await("that the session is gone", len(lines), isBus("waiting", "session"))
	outage := time.Since(began)
	session.join()
	bridge.attached(len(lines))
	after := session.start("healthy")
	if after.ID != before.ID || after.RunID == before.RunID {
		t.Fatalf("the query was not restarted from its checkpoint: %+v, before %+v", after, before)
	}
	again(t, "batches after", func() bool { return session.countInLog("progress", after) >= 3 })
	session.stop("healthy")
	came := finish(t, bridge, source, config.journal(), sink, account{session: session,
		ends: map[string]listener.Outcome{before.RunID: listener.OutcomeDriverLost}})
	if came[listener.OriginBus] == 0 || len(came) > 1 {
		t.Errorf("progress came by %v, want the bus only", came)
	}
	if had, goesOn := batchesOf(sink, before), batchesOf(sink, after); goesOn[0] <= slices.Max(had) {
		t.Errorf("the batches after the restart are %v, before it %v, want that they go on", goesOn, had)
	}
	refused := isSaid("spark connect does not answer, trying again", "connection refused")
	if n, most := bridge.said.count(refused), 2*(1+int(outage/time.Minute)); n > most {
		t.Errorf("in an outage of %s the bridge said %d times that Spark refuses its connection, want %d at most", outage, n, most)
	}
}

// batchesOf are the ids of the batches of a run that came to a sink.
func batchesOf(s *sink, run servers.Fact) (ids []int64) {
	arrivals, _ := s.all()
	for _, a := range arrivals {
		if progressOf(run)(a) {
			ids = append(ids, number(a.attributes["sparkbatchid"]))
		}
	}
	return ids
}
