//go:build integration

package integration

import (
	"strings"
	"testing"
	"time"

	"sparkbridge/connect/connecttest"
	"sparkbridge/integration/servers"
	"sparkbridge/listener"
)

// A connection that carries nothing any more, and does not break either, is noticed and replaced.
// Spark keeps the events.
func TestFrozenConnection(t *testing.T) {
	t.Parallel()
	came, adds := frozen(t, shared.spark42.get(t), 15*time.Second)
	if came[listener.OriginBus] == 0 || len(came) > 1 || adds != 1 {
		t.Errorf("progress came by %v in %d operations, want the bus only, and one", came, adds)
	}
}

// After a freeze for longer than Spark waits the bridge begins anew, and asks for what it has
// missed.
func TestFrozenForTooLong(t *testing.T) {
	t.Parallel()
	came, adds := frozen(t, hasty(t), 20*time.Second)
	if came[listener.OriginBus] == 0 || came[listener.OriginBackfill] == 0 || adds < 2 {
		t.Errorf("progress came by %v in %d operations, want some by the bus and some asked for, and a second one", came, adds)
	}
}

// frozen freezes the connection of a bridge for a while, and counts its operations.
func frozen(t *testing.T, spark *servers.Spark, d time.Duration) (origins, int) {
	t.Helper()
	const source = "frozen"
	session := openSession(t, spark)
	sink := opened(webhookSink(t, "webhook"))[0]
	tap := tapWire(t, spark.Remote())
	line := connecttest.StartWire(t, tap.address)
	config := configure(t, source, strings.Replace(tap.remote(session.id), tap.address, line.Addr(), 1), sink)
	bridge := startBridge(t, source, config)
	bridge.attached(0)
	run := session.start("healthy")
	sink.awaitCount(t, "events", 3, progressOf(run))
	line.Freeze()
	batchesFor(session, run, d)
	bridge.await("that Spark does not answer", 0, isSaid("spark connect does not answer, trying again", ""))
	line.Thaw()
	before := session.countInLog("progress", run)
	sink.awaitCount(t, "events after the freeze", before+2, progressOf(run))
	session.stop("healthy")
	came := finish(t, bridge, source, config.journal(), sink, account{session: session, idles: true})
	adds, _ := tap.busCommands(t)
	return came, len(adds)
}
