//go:build integration

package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sparkbridge/integration/servers"
)

// tail is bridge tail, which runs until the test ends.
type tail struct {
	t *testing.T
	*servers.Program
	printed   *said
	temporary string // where it keeps what it needs meanwhile
}

func startTail(t *testing.T, name string, args ...string) *tail {
	t.Helper()
	temporary := t.TempDir()
	tail := &tail{t: t, printed: &said{changed: make(chan struct{})}, temporary: temporary}
	program, err := servers.RunProgram(t.Context(), servers.ProgramOptions{
		Path: shared.program, Args: append([]string{"tail"}, args...), Dir: folder(t, name), Log: tail.printed,
		Env: append(os.Environ(), "TMPDIR="+temporary),
	})
	requireNoError(t, err)
	tail.Program = program
	t.Cleanup(func() {
		program.Kill()
		if lines, _ := tail.printed.all(); t.Failed() {
			for _, l := range lines {
				t.Logf("%s: %s", name, l.text)
			}
		}
	})
	return tail
}

// await waits for a printed line that has all parts.
func (t *tail) await(parts ...string) {
	t.t.Helper()
	_, err := t.printed.await(within(t.t, patience), 0, t.Exited(), func(l line) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(l.text, part) })
	})
	if err != nil {
		t.t.Fatalf("await a line with %q: %v", parts, err)
	}
}

// end stops it, and requires that it ends well.
func (t *tail) end() {
	t.t.Helper()
	requireNoError(t.t, t.Stop())
	if code := t.ExitCode(); code != 0 {
		t.t.Errorf("tail exits with %d", code)
	}
}

// ids are those of the printed events of a run, in order.
func (t *tail) ids(run servers.Fact) (ids []string) {
	lines, _ := t.printed.all()
	for _, l := range lines {
		var e struct{ ID, SparkRunID string }
		if json.Unmarshal([]byte(l.text), &e) == nil && e.SparkRunID == run.RunID {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// idsOf are those of the events that must come of a run.
func idsOf(want []expected, run servers.Fact, kinds ...string) (ids []string) {
	for _, e := range want {
		if e.run.RunID == run.RunID && (len(kinds) == 0 || slices.Contains(kinds, e.kind)) {
			ids = append(ids, e.id)
		}
	}
	return ids
}

// Tail prints what a bridge keeps and gets, found by its configuration and asked by its
// socket, over a crash of the bridge: each event once. Filters and forms do what they say.
func TestTailOfABridge(t *testing.T) {
	t.Parallel()
	const source = "tail"
	session := openSession(t, shared.spark42.get(t), "--fail-after", "6")
	sink := opened(webhookSink(t, "webhook"))[0]
	config := configure(t, source, session.spark.Session(user, session.id), sink)
	config["http"] = map[string]any{"listen": "off"}
	bridge := startBridge(t, source, config)
	bridge.attached(0)
	file := filepath.Join(bridge.dir, "bridge.yaml")
	run := session.start("healthy")
	failing := session.start("failing")
	sink.awaitCount(t, "events", 3, progressOf(run))

	all := startTail(t, "all", "-c", file, "-o", "json", "--since", "1h")
	ends := startTail(t, "ends", "-c", file, "-o", "json", "--last", "100000", "--kind", "terminated,bus", "--outcome", "failed")
	people := startTail(t, "people", "--journal", config.journal(), "--since", "1h", "--query", "heal*")
	all.await(run.RunID + ":progress:2")
	ends.await(source + ":bus:") // all are there before the bridge is not
	people.await("progress", "healthy")
	lines, _ := bridge.said.all()
	bridge.Kill()
	requireNoError(t, bridge.Restart(t.Context()))
	bridge.attached(len(lines))
	all.await(failing.RunID + ":terminated")
	session.stop("healthy")
	want := session.logged()
	all.await(run.RunID + ":terminated")
	ends.await(failing.RunID + ":terminated")
	people.await("terminated", "healthy", "stopped")
	for name, got := range map[string][2][]string{
		"all, of one run":     {all.ids(run), idsOf(want, run)},
		"all, of the other":   {all.ids(failing), idsOf(want, failing)},
		"ends, of one run":    {ends.ids(run), nil},
		"ends, of the failed": {ends.ids(failing), idsOf(want, failing, "terminated")},
	} {
		if at := difference(got[0], got[1]); at >= 0 {
			t.Errorf("%s:\ngot  %s\nwant %s", name, from(got[0], at), from(got[1], at))
		}
	}
	people.await("progress", "healthy", "batch 2", "rows", "/s")
	if shown, _ := people.printed.all(); slices.ContainsFunc(shown, func(l line) bool { return strings.Contains(l.text, "failing") }) {
		t.Error("a query is shown that was filtered out")
	}
	for _, tail := range []*tail{all, ends, people} {
		tail.end()
	}
	bridge.stop()
}

// Without a bridge tail asks Spark, beside whoever holds the bus; with --bus it takes the
// bus, and lets go of it.
func TestTailOfASession(t *testing.T) {
	t.Parallel()
	session := openSession(t, shared.spark42.get(t))
	wire := tapWire(t, session.spark.Remote())
	run := session.start("healthy")
	polling := startTail(t, "polling", "--remote", wire.remote(session.id), "-o", "json")
	polling.await(run.RunID + ":progress:2")
	if adds, removes := wire.busCommands(t); len(adds) != 0 || removes != 0 {
		t.Errorf("a tail that asks sent %d ADD and %d REMOVE", len(adds), removes)
	}
	holding := startTail(t, "holding", "--remote", wire.remote(session.id), "-o", "json", "--bus")
	holding.await(run.RunID+":progress:", `"sparkorigin":"bus"`)
	session.stop("healthy")
	want := session.logged()
	for _, tail := range []*tail{polling, holding} {
		tail.await(run.RunID + ":terminated")
		got := tail.ids(run)
		if at := difference(got[:len(got)-1], idsOf(want, run, "started", "progress")); at >= 0 {
			t.Errorf("events differ from place %d on: %s", at, from(got, at))
		}
		tail.end()
		if left, _ := os.ReadDir(tail.temporary); len(left) > 0 {
			t.Errorf("a tail has left %v", left)
		}
	}
	if adds, removes := wire.busCommands(t); len(adds) != 1 || removes != 1 {
		t.Errorf("the two tails sent %d ADD and %d REMOVE, want one of each", len(adds), removes)
	}
}
