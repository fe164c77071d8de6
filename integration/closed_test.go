//go:build integration

package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sparkbridge/listener"
)

// A session that its job has closed is finished for ever. Its runs end, and so does a bridge
// that knows no other session.
func TestSessionIsClosedByItsJob(t *testing.T) {
	t.Parallel()
	const source = "closed"
	session := openSession(t, shared.spark42.get(t))
	sink := opened(webhookSink(t, "webhook"))[0]
	config := configure(t, source, session.spark.Session(user, session.id), sink)
	bridge := startBridge(t, source, config)
	bridge.attached(0)
	closeSession(session, sink)
	code, message := bridge.exit()
	if code != 1 || len(message) != 1 || !strings.Contains(message[0], "closed for ever") || !strings.Contains(message[0], "new session_id") {
		t.Errorf("exit code %d, want 1; it said %q, want that the session is closed for ever, and what to do", code, message)
	}
	account := account{session: session, ends: endOfSession(session)}
	account.settled(sink)
	checkAccounts(t, source, journaled(t, config.journal()), sink, account)
}

// closeSession lets two queries make events that come to the sink, and ends the session.
func closeSession(session *session, sink *sink) {
	session.t.Helper()
	run, other := session.start("healthy"), session.start("unnamed")
	sink.awaitCount(session.t, "events", 2, progressOf(run))
	sink.awaitCount(session.t, "events of the other query", 2, progressOf(other))
	requireNoError(session.t, session.job.Send("close"))
	session.fact("closed", "")
}

// endOfSession are the outcomes of the runs of a session that was closed.
func endOfSession(session *session) map[string]listener.Outcome {
	ends := map[string]listener.Outcome{}
	for _, run := range session.runs {
		ends[run.RunID] = listener.OutcomeSessionClosed
	}
	return ends
}

// With remote_file the bridge goes on with the next session, when the file names it, and when it
// does so before the first session is closed.
func TestNextSessionInTheFile(t *testing.T) {
	t.Parallel()
	const source = "next"
	first := openSession(t, shared.spark42.get(t))
	sink := opened(webhookSink(t, "webhook"))[0]
	config := configure(t, source, "", sink)
	file := filepath.Join(config.journal()+".remote", "session")
	name := func(s *session) {
		t.Helper()
		requireNoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		requireNoError(t, os.WriteFile(file+".new", []byte(s.spark.Session(user, s.id)+"\n"), 0o600))
		requireNoError(t, os.Rename(file+".new", file))
	}
	delete(config.source(), "remote")
	config.source()["remote_file"] = file
	bridge := startBridge(t, source, config)
	bridge.await("that it waits for the file", 0, isBus("waiting", "connection string in "+file))
	name(first)
	bridge.attached(0)
	closeSession(first, sink)
	lines, _ := bridge.said.all()
	bridge.await("that it waits for the next session", len(lines), isBus("closed", file))

	second := openSession(t, first.spark)
	name(second)
	bridge.attached(len(lines))
	run := second.start("healthy")
	sink.awaitCount(t, "events of the second session", 2, progressOf(run))
	second.stop("healthy")
	sink.await(t, "the end in the second session", lacks([]expected{{id: run.RunID + ":terminated"}}))

	lines, _ = bridge.said.all()
	third := openSession(t, first.spark)
	name(third)
	bridge.attached(len(lines))
	run = third.start("healthy")
	sink.awaitCount(t, "events of the third session", 2, progressOf(run))
	startOwner(second).await("held") // the bus of the session that was left is free
	third.stop("healthy")
	finish(t, bridge, source, config.journal(), sink, account{session: first, ends: endOfSession(first)},
		account{session: second}, account{session: third})
}

// A session without a query for as long as detach_when_idle says is let go: its bus is free, and
// nothing is asked that would keep it alive.
func TestIdleSessionIsLetGo(t *testing.T) {
	t.Parallel()
	const source = "letgo"
	session := openSession(t, shared.spark42.get(t))
	sink := opened(webhookSink(t, "webhook"))[0]
	wire := tapWire(t, session.spark.Remote())
	config := configure(t, source, wire.remote(session.id), sink)
	config.source()["detach_when_idle"] = "3s"
	bridge := startBridge(t, source, config)
	run := session.start("healthy")
	bridge.attached(0)
	sink.awaitCount(t, "events", 2, progressOf(run))
	session.stop("healthy")
	bridge.await("that the session is let go", 0, isBus("closed", "detach_when_idle"))
	asked := wire.total()
	startOwner(session).await("held")
	batches := session.start("unnamed")
	batchesFor(session, batches, 2*time.Second)
	session.stop("unnamed")
	if n := wire.total() - asked; n > 0 {
		t.Errorf("the bridge made %d calls after it let go of the session", n)
	}
	session.runs = session.runs[:1]
	finish(t, bridge, source, config.journal(), sink, account{session: session})
}
