//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sparkbridge/integration/servers"
)

// expected is one event that must arrive: the bridge's contract, written down once more, on
// what Spark's event log and the job say.
type expected struct {
	id, kind  string
	run       servers.Fact
	batch     string    // of progress events
	at        time.Time // of progress and idle events
	exception string    // of terminated events: empty for a clean end
	class     string    // error class of the same
}

// logged waits until Spark's event log has the end of each run of the session, and returns
// what must have arrived of them.
func (s *session) logged() []expected {
	s.t.Helper()
	var found []servers.LoggedEvent
	again(s.t, "the ends of all queries in Spark's event log", func() bool {
		found = s.inLog()
		ends := 0
		for _, e := range found {
			if e.Kind == "terminated" {
				ends++
			}
		}
		return ends == len(s.runs)
	})
	return s.expect(found)
}

// inLog is what the event log has now of the session's runs.
func (s *session) inLog() []servers.LoggedEvent {
	s.t.Helper()
	events, err := s.spark.EventLogEvents()
	requireNoError(s.t, err)
	return slices.DeleteFunc(events, func(e servers.LoggedEvent) bool { return !s.knows(e.RunID) })
}

// countInLog counts events of one kind and run.
func (s *session) countInLog(kind string, run servers.Fact) (n int) {
	s.t.Helper()
	for _, e := range s.inLog() {
		if e.Kind == kind && e.RunID == run.RunID {
			n++
		}
	}
	return n
}

// expect makes a start, which the bus does not carry, the first event of each run.
func (s *session) expect(logged []servers.LoggedEvent) []expected {
	s.t.Helper()
	var all []expected
	begun := map[string]bool{}
	for _, e := range logged {
		if e.Kind == "started" {
			continue
		}
		run := s.runs[slices.IndexFunc(s.runs, func(f servers.Fact) bool { return f.RunID == e.RunID })]
		if !begun[e.RunID] {
			begun[e.RunID] = true
			all = append(all, expected{id: e.RunID + ":started:inferred", kind: "started", run: run})
		}
		all = append(all, expectLogged(s.t, e, run))
	}
	return all
}

func expectLogged(t *testing.T, e servers.LoggedEvent, run servers.Fact) expected {
	t.Helper()
	want := expected{kind: e.Kind, run: run}
	switch e.Kind {
	case "progress":
		want.batch = fmt.Sprint(e.BatchID)
		want.id = e.RunID + ":progress:" + want.batch
		want.at = instant(t, e.Timestamp)
	case "idle":
		want.at = instant(t, e.Timestamp)
		want.id = fmt.Sprintf("%s:idle:%d", e.RunID, want.at.UnixMilli())
	case "terminated":
		want.id = e.RunID + ":terminated"
		var end struct {
			Exception             string
			ErrorClassOnException string
		}
		requireNoError(t, json.Unmarshal(e.JSON, &end))
		want.exception, want.class = end.Exception, end.ErrorClassOnException
	default:
		t.Fatalf("the event log has a %s event", e.Kind)
	}
	return want
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	requireNoError(t, err)
	return at
}

// lacks names the expected events that have not arrived.
func lacks(want []expected) func([]arrival) []string {
	return func(arrivals []arrival) (missing []string) {
		have := map[string]bool{}
		for _, a := range arrivals {
			have[a.id()] = true
		}
		for _, e := range want {
			if !have[e.id] {
				missing = append(missing, e.id)
			}
		}
		return missing
	}
}

// checkDeliveries holds what a sink got of queries against what it must get: all of it, in
// Spark's order per query, nothing else, and repeats that are equal in every bit.
func checkDeliveries(t *testing.T, sink string, want []expected, arrivals []arrival) {
	t.Helper()
	wanted, got := map[string][]string{}, map[string][]string{}
	for _, e := range want {
		wanted[e.run.ID] = append(wanted[e.run.ID], e.id)
	}
	first := map[string]arrival{}
	repeats := 0
	for _, a := range arrivals {
		earlier, repeated := first[a.id()]
		if repeated {
			repeats++
			if !earlier.same(a) {
				t.Errorf("%s: a repeat of %s differs from the first:\n%+v\n%+v", sink, a.id(), earlier, a)
			}
			continue
		}
		first[a.id()] = a
		if query := a.attributes["sparkqueryid"]; query != "" {
			got[query] = append(got[query], a.id())
		}
	}
	t.Logf("%s: %d events, %d repeats", sink, len(first), repeats)
	for query, ids := range wanted {
		if at := difference(ids, got[query]); at >= 0 {
			t.Errorf("%s: events of query %s differ from place %d on:\ngot  %s\nwant %s", sink, query, at, from(got[query], at), from(ids, at))
		}
	}
	for query, ids := range got {
		if wanted[query] == nil {
			t.Errorf("%s: events of a query that is none of this test, %s: %s", sink, query, from(ids, 0))
		}
	}
}

// difference is the first place where two lists differ, -1 where they are equal.
func difference(a, b []string) int {
	for i := range max(len(a), len(b)) {
		if i >= len(a) || i >= len(b) || a[i] != b[i] {
			return i
		}
	}
	return -1
}

func from(ids []string, at int) string {
	return strings.Join(ids[min(at, len(ids)):min(at+5, len(ids))], " ") + " …"
}
