//go:build integration

package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sparkbridge/integration/servers"
	"sparkbridge/listener"
)

// hasty is a Spark server that waits for a client of an operation that is away for 2 s, and not
// for five minutes.
func hasty(t *testing.T) *servers.Spark {
	t.Helper()
	return startSpark(t, "4.2", map[string]string{
		"spark.connect.execute.reattachable.senderMaxStreamDuration": "3s",
		"spark.connect.execute.manager.detachedTimeout":              "2s",
		"spark.connect.execute.manager.maintenanceInterval":          "500ms",
	})
}

// abandoned is more than it takes the hasty server to see that a client is away (3 s), to wait
// for it (2 s) and to look (0.5 s).
const abandoned = 10 * time.Second

// A bridge that was killed reads on in its operation, if it is back in time: everything comes
// on the bus.
func TestBackInTime(t *testing.T) {
	t.Parallel()
	const source = "intime"
	session := openSession(t, shared.spark42.get(t))
	sink := opened(webhookSink(t, "webhook"))[0]
	wire := tapWire(t, session.spark.Remote())
	config := configure(t, source, wire.remote(session.id), sink)
	bridge := startBridge(t, source, config)
	bridge.attached(0)
	session.start("idle")
	run := session.start("healthy")
	sink.awaitCount(t, "events", 3, progressOf(run))
	away(session, bridge, run, 8*time.Second) // the stream of the bus has ended in between
	session.stop("healthy", "idle")
	came := finish(t, bridge, source, config.journal(), sink, account{session: session, idles: true})
	if came[listener.OriginBus] == 0 || len(came) > 1 {
		t.Errorf("progress came by %v, want the bus only", came)
	}
	if adds, removes := wire.busCommands(t); len(adds) != 1 || removes != 1 {
		t.Errorf("the bridge sent %d ADD and %d REMOVE, want one, and one at its end", len(adds), removes)
	}
}

// away kills the bridge, and starts it again when the run has made batches for so long.
func away(session *session, bridge *bridge, run servers.Fact, d time.Duration) {
	session.t.Helper()
	lines, _ := bridge.said.all()
	bridge.Kill()
	batchesFor(session, run, d)
	requireNoError(session.t, bridge.Restart(session.t.Context()))
	bridge.attached(len(lines))
}

// batchesFor waits until a run has logged batches of the next d.
func batchesFor(session *session, run servers.Fact, d time.Duration) {
	session.t.Helper()
	until := time.Now().Add(d)
	again(session.t, "batches of "+run.Query, func() bool {
		return slices.ContainsFunc(session.inLog(), func(e servers.LoggedEvent) bool {
			return e.RunID == run.RunID && e.Kind == "progress" && instant(session.t, e.Timestamp).After(until)
		})
	})
}

// A bridge that comes back too late finds its operation abandoned and the bus held by a listener
// that nobody reads, which is its own. It removes that and adds another, and asks for what it
// has missed.
func TestBackTooLate(t *testing.T) {
	t.Parallel()
	spark := hasty(t)
	t.Run("Spark has it still", func(t *testing.T) { t.Parallel(); backTooLate(t, spark, false) })
	t.Run("Spark has it no more", func(t *testing.T) { t.Parallel(); backTooLate(t, spark, true) })
}

func backTooLate(t *testing.T, spark *servers.Spark, forgets bool) {
	const source = "late"
	args := []string{"--fail-after", "6"}
	const kept = 5
	if forgets {
		args = append(args, "--conf", fmt.Sprintf("spark.sql.streaming.numRecentProgressUpdates=%d", kept))
	}
	session := openSession(t, spark, args...)
	sink := opened(webhookSink(t, "webhook"))[0]
	wire := tapWire(t, spark.Remote())
	config := configure(t, source, wire.remote(session.id), sink)
	bridge := startBridge(t, source, config)
	bridge.attached(0)
	run := session.start("healthy")
	for _, seen := range []servers.Fact{run, session.start("unnamed"), session.start("failing")} {
		sink.awaitCount(t, "events of "+seen.Query, 1, progressOf(seen))
	}
	lines, _ := bridge.said.all()
	bridge.Kill()
	had := session.countInLog("progress", run)
	if !forgets { // of a run that it has not seen, the bridge cannot know what is missing
		session.start("odd")
	}
	session.stop("unnamed")
	again(t, "the failure", func() bool { return failures(session) == 2 })
	batchesFor(session, run, abandoned)
	if forgets {
		again(t, "more batches than Spark keeps", func() bool { return session.countInLog("progress", run) > had+kept })
	}
	requireNoError(t, bridge.Restart(t.Context()))
	bridge.attached(len(lines))

	batchesFor(session, run, 2*time.Second)
	session.stop("healthy")
	if !forgets {
		session.stop("odd")
	}
	came := finish(t, bridge, source, config.journal(), sink, account{session: session, gaps: forgets})
	if came[listener.OriginBus] == 0 || came[listener.OriginBackfill] == 0 {
		t.Errorf("progress came by %v, want some by the bus and some asked for", came)
	}
	if gaps := sink.count(func(a arrival) bool { return a.kind() == "gap" }); forgets != (gaps > 0) {
		t.Errorf("%d gap events came", gaps)
	}
	if adds, removes := wire.busCommands(t); len(adds) != 2 || removes != 2 {
		t.Errorf("the bridge sent %d ADD and %d REMOVE, want two, and one before the second and one at its end", len(adds), removes)
	}
}
