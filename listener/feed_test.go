package listener

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"
)

// feedOf runs a feed over the stream and collects what it delivers.
func feedOf(s Stream, sp Spark) (*Feed, *[]Event) {
	var got []Event
	return &Feed{
		Stream: s, Spark: sp, Admission: NewAdmission(Session{Source: "etl", UserID: "u", SessionID: "s"}),
		Deliver:  func(_ context.Context, e []Event) error { got = append(got, e...); return nil },
		AskEvery: 5 * time.Second, Log: discard,
	}, &got
}

func runToEnd(t *testing.T, f *Feed, s *script) {
	t.Helper()
	s.fail(errGone)
	if err := f.Run(t.Context()); !errors.Is(err, errGone) {
		t.Fatalf("run: %v", err)
	}
}

func wantIDs(t *testing.T, got []Event, want ...string) {
	t.Helper()
	if !slices.Equal(ids(got), want) {
		t.Errorf("events\n got %v\nwant %v", ids(got), want)
	}
}

func TestStartComesBeforeAnythingElseOfARun(t *testing.T) {
	for name, first := range map[string]Raw{
		"progress": progressOf("a", 7), "idle": idleOf("a", 1), "terminated": terminatedOf("a"),
		"unknown": {Type: 9, JSON: []byte(`{"id":"q-a","runId":"a"}`)},
	} {
		s := newScript()
		f, got := feedOf(s, &spark{active: []Query{{ID: "q-a", RunID: "a", Name: "orders"}}})
		s.push("p1", first)
		runToEnd(t, f, s)
		start := (*got)[0]
		if len(*got) != 2 || start.ID != "a:started:inferred" || start.Origin != OriginInferred || start.Source != "etl" ||
			start.UserID != "u" || start.SessionID != "s" || start.Name != "orders" || start.BatchID != NoBatch {
			t.Errorf("%s: %v %+v", name, ids(*got), start)
		}
		if p := string(start.Payload); p != `{"id":"q-a","runId":"a","name":"orders","timestamp":null}` {
			t.Errorf("%s: payload %s", name, p)
		}
	}
}

func TestNamesAreJoinedOntoEventsThatLackThem(t *testing.T) {
	s := newScript()
	f, got := feedOf(s, &spark{active: []Query{{ID: "q-a", RunID: "a", Name: "orders"}}})
	s.push("p1", idleOf("a", 1), terminatedOf("a"), terminatedOf("b"), progressOf("c", 0), idleOf("c", 2))
	runToEnd(t, f, s)
	names := map[string]string{}
	for _, e := range *got {
		names[e.RunID+string(e.Kind)] = e.Name
	}
	for key, want := range map[string]string{"aidle": "orders", "aterminated": "orders", "bterminated": "", "cidle": "n-c"} {
		if names[key] != want {
			t.Errorf("%s has the name %q, want %q", key, names[key], want)
		}
	}
	if p := gjson.GetBytes((*got)[3].Payload, "name"); p.Type != gjson.Null || (*got)[3].ID != "b:started:inferred" {
		t.Errorf("an unknown name is not null: %s %s", (*got)[3].ID, (*got)[3].Payload)
	}
}

func TestRepeatsAreLeftOutAndConfirmed(t *testing.T) {
	s := newScript()
	f, got := feedOf(s, &spark{})
	unknown := Raw{Type: 9, JSON: []byte(`{"id":"q-a","runId":"a"}`)}
	replay := func() {
		s.push("p1", progressOf("a", 0), progressOf("a", 1))
		s.push("p2", idleOf("a", 1))
		s.push("p3", unknown)
		s.push("p4", terminatedOf("a"))
		s.push("p5")
	}
	replay()
	replay()
	runToEnd(t, f, s)
	wantIDs(t, *got, "a:started:inferred", "a:progress:0", "a:progress:1", "a:idle:1767225661000", "a:type9:p3", "a:terminated")
	if f.Admission.Duplicates() != 5 {
		t.Errorf("%d duplicates counted, want 5", f.Admission.Duplicates())
	}
	if want := []string{"p1", "p2", "p3", "p4", "p5", "p1", "p2", "p3", "p4", "p5"}; !slices.Equal(s.done, want) {
		t.Errorf("confirmed %v, want %v", s.done, want)
	}
}

func TestAJumpInBatchIDsBecomesAGapBeforeIt(t *testing.T) {
	s := newScript()
	f, got := feedOf(s, &spark{})
	s.push("p1", progressOf("a", 12), progressOf("a", 15), progressOf("a", 16))
	runToEnd(t, f, s)
	wantIDs(t, *got, "a:started:inferred", "a:progress:12", "a:gap:13-14", "a:progress:15", "a:progress:16")
	gap := (*got)[2]
	p := gjson.ParseBytes(gap.Payload)
	if gap.Kind != KindGap || gap.Origin != OriginBridge || gap.Name != "n-a" || p.Get("fromBatchId").Int() != 13 || p.Get("toBatchId").Int() != 14 ||
		p.Get("id").Str != "q-a" || p.Get("runId").Str != "a" || p.Get("reason").Str != GapNotReceived || p.Get("timestamp").Str == "" {
		t.Errorf("%+v %s", gap, gap.Payload)
	}
}

func TestAnEndIsNeverBeforeTheLastEvent(t *testing.T) {
	s := newScript()
	f, got := feedOf(s, &spark{})
	f.Admission.now = func() time.Time { return time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC) } // our clock is behind Spark's
	s.push("p1", progressOf("a", 5), terminatedOf("a"))
	runToEnd(t, f, s)
	if end, last := (*got)[2], (*got)[1]; !end.Time.Equal(last.Time) {
		t.Errorf("the end is at %s, the last event at %s", end.Time, last.Time)
	}
}

func TestActiveQueriesStartThoughTheStreamIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sp := newScript(), &spark{active: []Query{{ID: "q-a", RunID: "a", Name: "slow"}}}
		f, got := feedOf(s, sp)
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- f.Run(ctx) }()
		synctest.Wait()
		wantIDs(t, *got, "a:started:inferred")
		sp.change(func() {}) // what was read is before what comes
		sp.set(Query{ID: "q-a", RunID: "a", Name: "slow"}, Query{ID: "q-b", RunID: "b"})
		time.Sleep(5*time.Second + time.Millisecond)
		synctest.Wait()
		wantIDs(t, *got, "a:started:inferred", "b:started:inferred")
		sp.change(func() {}) // what was read is before what comes
		time.Sleep(time.Minute)
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
		if sp.asked < 13 || sp.asked > 15 {
			t.Errorf("asked %d times in 65 s", sp.asked)
		}
		wantIDs(t, *got, "a:started:inferred", "b:started:inferred")
	})
}

func TestNoAnswerHoldsNothingUp(t *testing.T) {
	s, sp := newScript(), &spark{err: errors.New("unavailable")}
	f, got := feedOf(s, sp)
	s.push("p1", idleOf("a", 1))
	s.push("p2", idleOf("a", 2))
	runToEnd(t, f, s)
	wantIDs(t, *got, "a:started:inferred", "a:idle:1767225661000", "a:idle:1767225662000")
	if sp.asked != 1 { // not again for each event of a server that does not answer
		t.Errorf("asked %d times", sp.asked)
	}
}

func TestAFailedDeliveryIsNotConfirmed(t *testing.T) {
	s := newScript()
	f, _ := feedOf(s, &spark{})
	full := errors.New("disk full")
	f.Deliver = func(context.Context, []Event) error { return full }
	s.push("p1", progressOf("a", 0))
	if err := f.Run(t.Context()); !errors.Is(err, full) {
		t.Fatalf("run: %v", err)
	}
	if len(s.done) != 0 {
		t.Errorf("confirmed %v", s.done)
	}
	if err := f.Drain(t.Context()); !errors.Is(err, ErrNotKept) || s.finished {
		t.Errorf("drain: %v, finished %v", err, s.finished)
	}
	if ok, err := f.Admission.Snapshot(func([]byte) error { return nil }); ok || err != nil {
		t.Errorf("marks ahead of what is kept were handed out: %v %v", ok, err)
	}
}

func TestNoSnapshotWhileADeliveryIsUnderWay(t *testing.T) {
	s := newScript()
	f, _ := feedOf(s, &spark{})
	calls := 0
	f.Deliver = func(context.Context, []Event) error {
		calls++
		if ok, err := f.Admission.Snapshot(func([]byte) error { return nil }); ok || err != nil {
			t.Errorf("snapshot: %v %v", ok, err)
		}
		return nil
	}
	s.push("p1", progressOf("a", 0))
	runToEnd(t, f, s)
	if calls != 1 {
		t.Fatalf("delivered %d times", calls)
	}
	if ok, err := f.Admission.Snapshot(func([]byte) error { return nil }); !ok || err != nil {
		t.Errorf("snapshot: %v %v", ok, err)
	}
}

func TestDrainCarriesWhatSparkStillHolds(t *testing.T) {
	s := newScript()
	f, got := feedOf(s, &spark{})
	s.push("p1", progressOf("a", 0))
	s.rest = []Delivery{{Events: []Raw{progressOf("a", 1)}, Position: "p2"}}
	if err := f.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, *got, "a:started:inferred", "a:progress:0", "a:progress:1")
	if !s.finished || !slices.Equal(s.done, []string{"p1", "p2"}) {
		t.Errorf("finished %v, confirmed %v", s.finished, s.done)
	}
	if _, err := s.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

// After a restart the admission decides as if the process had not died, whatever
// part of the journal the snapshot covers.
func TestRestartDecidesAsBefore(t *testing.T) {
	deliveries := []Delivery{
		{Position: "p1", Events: []Raw{progressOf("a", 3), progressOf("a", 7)}},
		{Position: "p2", Events: []Raw{idleOf("a", 1), progressOf("b", 0)}},
		{Position: "p3", Events: []Raw{{Type: 9, JSON: []byte(`{"runId":"a"}`), ResponseID: "p3"}, {Type: 9, JSON: []byte(`{}`), ResponseID: "p3", Index: 1}}},
		{Position: "p4", Events: []Raw{terminatedOf("a")}},
	}
	all := func(a *Admission) (out []Event) {
		for _, d := range deliveries {
			for _, e := range a.read(d) {
				out = append(out, a.admitOne(e, true)...)
			}
		}
		return out
	}
	journal := all(NewAdmission(Session{Source: "etl"}))
	for covered := range len(journal) + 1 {
		for died := covered; died <= len(journal); died++ {
			before := NewAdmission(Session{Source: "etl"})
			for _, e := range journal[:covered] {
				before.Replay(e)
			}
			after := NewAdmission(Session{Source: "etl"})
			if ok, err := before.Snapshot(after.Restore); !ok || err != nil {
				t.Fatal(ok, err)
			}
			for _, e := range journal[:died] { // replaying what is covered does no harm
				after.Replay(e)
			}
			rest := all(after)
			if got, want := strings.Join(ids(rest), " "), strings.Join(ids(journal[died:]), " "); got != want {
				t.Errorf("covered %d, died after %d:\n got %s\nwant %s", covered, died, got, want)
			}
			if end := rest; len(end) > 0 && died >= 3 && end[len(end)-1].Name != "n-a" {
				t.Errorf("covered %d, died after %d: the name was forgotten", covered, died)
			}
		}
	}
}

func TestSweepForgetsEndedRunsAndTheirNames(t *testing.T) {
	a := NewAdmission(Session{Source: "etl"})
	for _, e := range a.read(Delivery{Events: []Raw{progressOf("a", 0), terminatedOf("a"), progressOf("b", 0)}}) {
		a.admitOne(e, true)
	}
	a.now = func() time.Time { return time.Now().Add(48 * time.Hour) }
	a.sweep()
	if a.lives["a"] != nil || a.lives["b"] == nil || a.marks.Known("a") {
		t.Error("the ended run is remembered, or the running one is not")
	}
}
