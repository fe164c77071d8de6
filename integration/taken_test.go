//go:build integration

package integration

import (
	"testing"
	"time"

	"sparkbridge/listener"
)

// A session whose bus another client holds is polled: that client's listener goes on, and the
// bridge tells the same as on the bus, also when it is killed meanwhile. It takes the bus when
// that has become free, without a loss or a repeat.
func TestTakenBusIsPolled(t *testing.T) {
	t.Parallel() // it waits most of the time
	const source = "taken"
	session := openSession(t, shared.spark42.get(t), "--fail-after", "6", "--trigger", "2 seconds")
	owner := startOwner(session)
	owner.await("held")
	sink := opened(webhookSink(t, "webhook"))[0]
	wire := tapWire(t, session.spark.Remote())
	config := configure(t, source, wire.remote(session.id), sink)
	bridge := startBridge(t, source, config)
	bridge.await("that the bus is taken", 0, isBus("taken", "another client holds the bus"))
	bridge.await("that the session is polled", 0, isBus("polling", "another client holds the bus"))
	run := session.start("healthy")
	session.start("idle")
	failing := session.start("failing")
	stopped := session.start("unnamed")
	sink.awaitCount(t, "events", 3, progressOf(run))
	sink.awaitCount(t, "events of the query that is stopped", 1, progressOf(stopped))
	sink.awaitCount(t, "events of the query that fails", 1, progressOf(failing))

	bridge.Kill()
	session.stop("unnamed")
	batchesFor(session, run, 3*time.Second)
	lines, _ := bridge.said.all()
	requireNoError(t, bridge.Restart(t.Context()))
	bridge.await("that the session is polled again", len(lines), isBus("polling", ""))
	batchesFor(session, run, 3*time.Second)
	again(t, "the failure", func() bool { return failures(session) == 2 })
	owner.checkHeard(session, failing)
	owner.checkHeard(session, stopped)
	if _, removes := wire.busCommands(t); removes != 0 {
		t.Error("the bridge removed the owner's listener")
	}

	lines, _ = bridge.said.all()
	owner.do("release", "released")
	bridge.attached(len(lines))
	last := session.start("odd")
	sink.awaitCount(t, "events of the freed bus", 2, progressOf(last))
	session.stop("healthy", "idle", "odd")
	came := finish(t, bridge, source, config.journal(), sink, account{session: session, idles: true})
	if came[listener.OriginPoll] == 0 || came[listener.OriginBus] == 0 {
		t.Errorf("progress came by %v, want some by polling and then some by the bus", came)
	}
	if n := bridge.said.count(isBus("taken", "")); n != 2 {
		t.Errorf("the bridge said %d times that the bus is taken, want once in each of its two lives", n)
	}
	if adds, removes := wire.busCommands(t); len(adds) < 3 || removes != 1 {
		t.Errorf("the bridge sent %d ADD and %d REMOVE, want at least three, and one at its end", len(adds), removes)
	}
}

// With takeover: true the bridge takes a bus that another client holds, once, and that client's
// listener gets nothing any more. What it was told before is asked for.
func TestTakeover(t *testing.T) {
	t.Parallel()
	const source = "takeover"
	session := openSession(t, shared.spark40.get(t))
	owner := startOwner(session)
	owner.await("held")
	run := session.start("healthy")
	again(t, "events at the owner's listener", func() bool { return len(owner.heard(run)) >= 3 })
	sink := opened(webhookSink(t, "webhook"))[0]
	wire := tapWire(t, session.spark.Remote())
	config := configure(t, source, wire.remote(session.id), sink)
	config.source()["token"], config.source()["takeover"] = token40, true
	bridge := startBridge(t, source, config)
	bridge.await("that the bus is taken over", 0, isBus("taken", "takeover: true"))
	bridge.attached(0)
	heard := len(owner.heard(run))
	before := session.countInLog("progress", run)
	sink.awaitCount(t, "events", before+3, progressOf(run))
	session.stop("healthy")
	came := finish(t, bridge, source, config.journal(), sink, account{session: session, idles: true})
	if came[listener.OriginBackfill] == 0 || came[listener.OriginBus] == 0 {
		t.Errorf("progress came by %v, want some asked for and then some by the bus", came)
	}
	if late := len(owner.heard(run)) - heard; late > 1 {
		t.Errorf("the owner's listener got %d events after it was removed", late)
	}
	if adds, removes := wire.busCommands(t); len(adds) != 2 || removes != 2 {
		t.Errorf("the bridge sent %d ADD and %d REMOVE, want two, and one between them and one at its end", len(adds), removes)
	}
}

// With mode: poll the bridge never touches the bus, and tells all the same.
func TestModePoll(t *testing.T) {
	t.Parallel()
	const source = "poll"
	session := openSession(t, shared.spark40.get(t), "--fail-after", "6", "--trigger", "1 second")
	sink := opened(webhookSink(t, "webhook"))[0]
	wire := tapWire(t, session.spark.Remote())
	config := configure(t, source, wire.remote(session.id), sink)
	config.source()["token"], config.source()["mode"] = token40, "poll"
	bridge := startBridge(t, source, config)
	bridge.await("that the session is polled", 0, isBus("polling", "mode: poll"))
	run := session.start("healthy")
	session.start("stateful=Umsatz pro Stunde (EU)")
	session.start("idle")
	session.start("failing")
	sink.awaitCount(t, "events", 3, progressOf(run))
	startOwner(session).await("held") // it would hang if the bus were held
	session.stop("healthy")
	goesOn := session.start("healthy") // from its checkpoint
	batchesFor(session, goesOn, 11*time.Second)
	session.stop("healthy", "stateful", "idle")
	came := finish(t, bridge, source, config.journal(), sink, account{session: session, idles: true})
	if came[listener.OriginPoll] == 0 || came[listener.OriginBus] > 0 {
		t.Errorf("progress came by %v, want none by the bus", came)
	}
	if adds, removes := wire.busCommands(t); len(adds) > 0 || removes > 0 {
		t.Errorf("the bridge sent %d ADD and %d REMOVE, want none", len(adds), removes)
	}
}
