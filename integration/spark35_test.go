//go:build integration

package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sparkbridge/integration/servers"
	"sparkbridge/listener"
)

// Spark 3.5 has no listener bus. It is polled, over a crash of the bridge and one of the driver,
// and tells the same.
func TestSpark35IsPolled(t *testing.T) {
	t.Parallel()
	const source = "spark-35"
	spark := startSpark(t, "3.5", nil)
	refusesToPoll(t, spark)
	session := openSession(t, spark, "--fail-after", "6", "--trigger", "1 second")
	sink := opened(webhookSink(t, "webhook"))[0]
	wire := tapWire(t, spark.Remote())
	config := configure(t, source, wire.remote(session.id), sink)
	bridge := startBridge(t, source, config)
	bridge.await("that the session is polled", 0, isBus("polling", "Spark before 4.0"))
	first := session.start("healthy")
	session.start("idle")
	session.start("failing")
	stopped := session.start("unnamed")
	sink.awaitCount(t, "events", 3, progressOf(first))
	sink.awaitCount(t, "events of the query that is stopped", 1, progressOf(stopped))

	bridge.Kill()
	session.stop("unnamed")
	batchesFor(session, first, 3*time.Second)
	lines, _ := bridge.said.all()
	requireNoError(t, bridge.Restart(t.Context()))
	bridge.await("that the session is polled again", len(lines), isBus("polling", ""))
	again(t, "the failure", func() bool { return failures(session) == 2 })
	batchesFor(session, first, 11*time.Second)
	session.stop("idle")
	sink.await(t, "the ends so far", account{session: session}.endsOf("idle", "failing", "unnamed"))

	spark.Kill()
	session.job.Kill()
	requireNoError(t, spark.Restart(t.Context()))
	// Without ids of its own a 3.5 server shows that it is another only while it lacks the session,
	// or by what it does not know.
	sink.await(t, "the end of what the driver ran", account{session: session}.endsOf("healthy"))
	session.join()
	second := session.start("healthy")
	sink.awaitCount(t, "events of the new driver", 3, progressOf(second))
	session.stop("healthy")
	came := finish(t, bridge, source, config.journal(), sink, account{session: session, idles: true,
		ends: map[string]listener.Outcome{first.RunID: listener.OutcomeDriverLost}})
	if came[listener.OriginPoll] == 0 || came[listener.OriginBus] > 0 {
		t.Errorf("progress came by %v, want none by the bus", came)
	}
	if adds, removes := wire.busCommands(t); removes > 0 {
		t.Errorf("the bridge sent %d ADD and %d REMOVE, want no REMOVE", len(adds), removes)
	}
}

// refusesToPoll requires that a bridge which must not poll says what is wrong, and ends.
func refusesToPoll(t *testing.T, spark *servers.Spark) {
	t.Helper()
	session := openSession(t, spark)
	config := configure(t, "bus", spark.Session(user, session.id), webhookSink(t, "webhook"))
	config.source()["mode"] = "bus"
	code, message := startBridge(t, "bus", config).exit()
	if code != 1 || len(message) != 1 || !strings.Contains(message[0], "Spark 4.0") || !strings.Contains(message[0], "mode: poll") {
		t.Errorf("with mode: bus exit code %d, want 1; it said %q, want what to set", code, message)
	}
}

// endsOf names the runs of some kinds of query whose end has not arrived.
func (a account) endsOf(kinds ...string) func([]arrival) []string {
	return func(arrivals []arrival) (missing []string) {
		ended := map[string]bool{}
		for _, arrived := range arrivals {
			if arrived.kind() == "terminated" {
				ended[arrived.attributes["sparkrunid"]] = true
			}
		}
		for _, run := range a.runs {
			if slices.Contains(kinds, run.Query) && !ended[run.RunID] {
				missing = append(missing, "the end of "+run.Query)
			}
		}
		return missing
	}
}
