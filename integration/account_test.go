//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"sparkbridge/integration/servers"
	"sparkbridge/listener"
)

// account is what the record of a session's runs must hold, by whatever way it came: all that
// Spark's event log has of them, in its order, each event once, and an end of each run.
type account struct {
	*session
	// gaps allows a gap event to stand for batches.
	gaps bool
	// idles demands the idle events too.
	idles bool
	// ends are the outcomes of ends that are inferred, by run id, of runs that have gone with
	// their driver or session. Their last events may be missing.
	ends map[string]listener.Outcome
}

// span is a gap event.
type span struct {
	RunID                  string
	FromBatchID, ToBatchID int64
}

// settled waits until Spark's log is complete and the sink has what it tells of.
func (a account) settled(s *sink) {
	a.t.Helper()
	again(a.t, "the ends of all queries in Spark's event log", func() bool {
		ended := map[string]bool{}
		for _, e := range a.inLog() {
			ended[e.RunID] = ended[e.RunID] || e.Kind == "terminated"
		}
		return !slices.ContainsFunc(a.runs, func(run servers.Fact) bool { return !ended[run.RunID] && a.ends[run.RunID] == "" })
	})
	want := a.expect(a.inLog())
	s.await(a.t, s.name, func(arrivals []arrival) []string { return a.lacking(want, arrivals) })
}

// lacking names what a sink does not have yet.
func (a account) lacking(want []expected, arrivals []arrival) (missing []string) {
	have := map[string]bool{}
	var spans []span
	for _, arrived := range arrivals {
		have[arrived.id()] = true
		if arrived.kind() == "gap" {
			spans = append(spans, readSpan(a.t, arrived.payload))
		}
	}
	for _, run := range a.runs {
		if !have[run.RunID+":terminated"] && !have[run.RunID+":terminated:inferred"] {
			missing = append(missing, run.RunID+":terminated")
		}
	}
	for _, e := range want {
		if e.kind == "progress" && !have[e.id] && a.ends[e.run.RunID] == "" && !covered(spans, e) {
			missing = append(missing, e.id)
		}
	}
	return missing
}

func readSpan(t *testing.T, payload []byte) (s span) {
	t.Helper()
	requireNoError(t, json.Unmarshal(payload, &s))
	return s
}

func covered(spans []span, e expected) bool {
	return slices.ContainsFunc(spans, func(s span) bool {
		return s.RunID == e.run.RunID && s.FromBatchID <= number(e.batch) && number(e.batch) <= s.ToBatchID
	})
}

func number(batch string) (n int64) {
	_, _ = fmt.Sscan(batch, &n)
	return n
}

// origins counts the progress events of a journal by the way they came.
type origins map[listener.Origin]int

// check holds a journal against the account.
func (a account) check(source string, events []listener.Event) origins {
	a.t.Helper()
	want := map[string][]expected{}
	for _, e := range a.expect(a.inLog()) {
		want[e.run.RunID] = append(want[e.run.RunID], e)
	}
	came := origins{}
	for _, run := range a.runs {
		var got []listener.Event
		for _, e := range events {
			if e.RunID != run.RunID {
				continue
			}
			got = append(got, e)
			if e.Kind == listener.KindProgress {
				came[e.Origin]++
			}
			if e.QueryID != run.ID || e.Name != run.Name || e.Source != source || e.UserID != user || e.SessionID != a.id {
				a.t.Errorf("journal: %s is of %s, query %s %q, session %s of %s", e.ID, e.Source, e.QueryID, e.Name, e.SessionID, e.UserID)
			}
		}
		a.checkRun(run, want[run.RunID], got)
	}
	a.checkSuccession(events)
	a.t.Logf("progress in the journal: %v", came)
	return came
}

// checkSuccession requires that the runs of one query do not mingle.
func (a account) checkSuccession(events []listener.Event) {
	a.t.Helper()
	order := map[string]int{} // by run
	for i, run := range a.runs {
		order[run.RunID] = i
	}
	newest := map[string]int{} // by query
	for _, e := range events {
		i, known := order[e.RunID]
		if known && i < newest[e.QueryID] {
			a.t.Errorf("journal: %s comes behind an event of the next run, %s", e.ID, a.runs[newest[e.QueryID]].RunID)
		}
		newest[e.QueryID] = max(newest[e.QueryID], i)
	}
}

// checkDialect requires that what was asked for looks like what comes by the bus: of a run
// that has had both, the same keys.
func checkDialect(t *testing.T, run servers.Fact, got []listener.Event) {
	t.Helper()
	keys, asked := map[bool]map[string]bool{true: {}, false: {}}, map[bool]int{}
	for _, e := range got {
		if e.Kind != listener.KindProgress {
			continue
		}
		byBus := e.Origin == listener.OriginBus
		asked[byBus]++
		var document map[string]json.RawMessage
		requireNoError(t, json.Unmarshal(e.Payload, &document))
		for key := range document {
			keys[byBus][key] = true
		}
	}
	if asked[true] > 2 && asked[false] > 2 && !maps.Equal(keys[true], keys[false]) {
		t.Errorf("journal: progress of run %s has the keys %v by the bus, and %v asked for", run.RunID, keys[true], keys[false])
	}
}

// checkRun holds what is in the journal of one run against what Spark logged of it.
func (a account) checkRun(run servers.Fact, want []expected, got []listener.Event) {
	a.t.Helper()
	place := map[string]int{}
	for i, e := range want {
		place[e.id] = i
	}
	var spans []span
	have := map[string]bool{}
	last := -1
	for _, e := range got {
		if have[e.ID] {
			a.t.Errorf("journal: %s is in it twice", e.ID)
		}
		have[e.ID] = true
		i, logged := place[e.ID]
		switch {
		case e.Kind == listener.KindGap:
			spans = append(spans, a.checkGap(e, got))
		case e.Kind == listener.KindTerminated && e.Origin == listener.OriginInferred:
		case !logged:
			a.t.Errorf("journal: %s, by %s, is not in Spark's log: %s", e.ID, e.Origin, e.Payload)
		case i <= last:
			a.t.Errorf("journal: %s, by %s, comes behind %s", e.ID, e.Origin, want[last].id)
		default:
			last = i
			if !want[i].at.IsZero() && !e.Time.Equal(want[i].at) {
				a.t.Errorf("journal: %s is of %s, want %s", e.ID, e.Time, want[i].at)
			}
		}
	}
	a.checkMissing(want, have, spans)
	a.checkEnd(run, want, got)
	checkDialect(a.t, run, got)
}

// checkMissing decides whether what the journal lacks of a run may be missing.
func (a account) checkMissing(want []expected, have map[string]bool, spans []span) {
	a.t.Helper()
	tail := len(want)
	for tail > 0 && !have[want[tail-1].id] {
		tail--
	}
	for i, e := range want {
		gone := i >= tail && a.ends[e.run.RunID] != ""
		switch {
		case have[e.id], gone, e.kind == "terminated", e.kind == "idle" && !a.idles, covered(spans, e):
		default:
			a.t.Errorf("journal: %s is missing (place %d of %d)", e.id, i, len(want))
		}
	}
}

// checkGap requires that a gap event is between the batches around it, and names none that is
// there.
func (a account) checkGap(gap listener.Event, of []listener.Event) span {
	a.t.Helper()
	s := readSpan(a.t, gap.Payload)
	if !a.gaps {
		a.t.Errorf("journal: a gap: %s", gap.Payload)
	}
	for _, e := range of {
		before := e.Sequence < gap.Sequence
		if e.Kind == listener.KindProgress && (before && e.BatchID >= s.FromBatchID || !before && e.BatchID <= s.ToBatchID) {
			a.t.Errorf("journal: %s is on the wrong side of %s, or in it", e.ID, gap.ID)
		}
	}
	return s
}

// checkEnd requires that the run has an end, nothing behind it, and the right outcome.
func (a account) checkEnd(run servers.Fact, want []expected, got []listener.Event) {
	a.t.Helper()
	told, exception := listener.OutcomeStopped, want[len(want)-1].exception
	if exception != "" {
		told = listener.OutcomeFailed
	}
	ends := 0
	for _, e := range got {
		if e.Kind != listener.KindTerminated {
			if ends > 0 {
				a.t.Errorf("journal: %s comes behind the end of its run", e.ID)
			}
			continue
		}
		ends++
		outcome := told
		if gone := a.ends[run.RunID]; gone != "" && e.Origin == listener.OriginInferred {
			outcome = gone
		}
		if e.Outcome != outcome || (exception != "") != strings.Contains(string(e.Payload), "beyond the end") {
			a.t.Errorf("journal: %s has outcome %s, want %s: %.500s", e.ID, e.Outcome, outcome, e.Payload)
		}
	}
	if ends == 0 {
		a.t.Errorf("journal: run %s of %s has no end", run.RunID, run.Query)
	}
}

// finish ends a bridge when the sink has everything, and holds journal and sink against the
// accounts: these and no other events.
func finish(t *testing.T, bridge *bridge, source, journal string, s *sink, accounts ...account) origins {
	t.Helper()
	for _, a := range accounts {
		a.settled(s)
	}
	bridge.stop()
	return checkAccounts(t, source, journaled(t, journal), s, accounts...)
}

func checkAccounts(t *testing.T, source string, events []listener.Event, s *sink, accounts ...account) origins {
	t.Helper()
	came := origins{}
	known := map[string]bool{}
	for _, a := range accounts {
		for origin, n := range a.check(source, events) {
			came[origin] += n
		}
		for _, run := range a.runs {
			known[run.RunID] = true
		}
	}
	var want []expected
	for _, e := range events {
		if e.RunID == "" {
			continue
		}
		want = append(want, expected{id: e.ID, run: servers.Fact{ID: e.QueryID}})
		if !known[e.RunID] {
			t.Errorf("journal: %s is of no run of this test", e.ID)
		}
	}
	arrivals, _ := s.all()
	checkDeliveries(t, s.name, want, arrivals)
	checkSame(t, s.name, events, arrivals)
	return came
}
