package listener

import (
	"errors"
	"testing"
)

// A session that is left tells its last: batches that were lost, and ends.
func TestLeavingAsksOnceMore(t *testing.T) {
	s, sp := newScript(), &spark{}
	f, got := feedOf(s, sp)
	s.push("p1", progressOf("a", 0), progressOf("b", 0), progressOf("b", 3))
	sp.change(func() { sp.err = errors.New("unavailable") }) // the hole stays open
	runToEnd(t, f, s)
	before := len(*got)

	sp.change(func() { sp.err = nil; sp.failures = map[string]*Failure{"a": {Message: "boom"}} })
	sp.keeps("b", 0, 1, 2, 3)
	sp.set(Query{ID: "q-b", RunID: "b", Name: "n-b"})
	f, got2 := again(f, sp)
	if err := f.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, (*got)[:before], "a:started:inferred", "a:progress:0", "b:started:inferred", "b:progress:0", "b:progress:3")
	wantIDs(t, *got2, "b:progress:1", "b:progress:2", "a:terminated:inferred")
	if end := (*got2)[2]; end.Outcome != OutcomeFailed {
		t.Errorf("outcome %s", end.Outcome)
	}
}

// again is a feed that goes on with the admission of another.
func again(f *Feed, sp Spark) (*Feed, *[]Event) {
	next, got := feedOf(newScript(), sp)
	next.Admission = f.Admission
	return next, got
}

// The runs of a session that was left are asked about no more, also after a restart.
func TestRunsOfALeftSessionStayWithIt(t *testing.T) {
	for name, outcome := range map[string]Outcome{"closed": OutcomeSessionClosed, "going on": ""} {
		t.Run(name, func(t *testing.T) {
			s, sp := newScript(), &spark{err: errors.New("unavailable")}
			f, got := feedOf(s, sp)
			s.push("p1", progressOf("a", 1), progressOf("a", 4))
			runToEnd(t, f, s)

			restarted := NewAdmission(Session{Source: "etl"})
			for _, e := range *got {
				restarted.Replay(e)
			}
			next := Session{Source: "etl", UserID: "u", SessionID: "next"}
			restarted.Follow(next)
			left := restarted.Left()
			if len(left) != 1 || left[0].SessionID != "s" || left[0].UserID != "u" {
				t.Fatalf("left %+v", left)
			}
			f, news := feedOf(newScript(), sp)
			f.Admission = restarted
			for range 2 { // the second time there is nothing to do
				if err := f.Part(t.Context(), left[0], outcome); err != nil {
					t.Fatal(err)
				}
			}
			want := []string{"a:gap:2-3", "a:terminated:inferred"}
			if outcome == "" {
				want = want[:1]
			}
			wantIDs(t, *news, want...)
			for _, e := range *news {
				if e.SessionID != "s" || e.Kind == KindTerminated && e.Outcome != outcome {
					t.Errorf("%s is of session %s, outcome %s", e.ID, e.SessionID, e.Outcome)
				}
			}
			if left := restarted.Left(); len(left) != 0 {
				t.Errorf("still left: %+v", left)
			}
		})
	}
}
