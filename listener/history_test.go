package listener

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"
)

// runFeed runs a feed in the background; stop ends it.
func runFeed(t *testing.T, f *Feed) (stop func()) {
	t.Helper()
	done := make(chan error, 1)
	ctx, cancel := contextOf(t)
	go func() { done <- f.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-done; !errors.Is(err, ctx.Err()) {
			t.Errorf("run: %v", err)
		}
	}
}

func TestLostBatchesAreBackfilledBeforeWhatRevealedThem(t *testing.T) {
	s, sp := newScript(), &spark{}
	sp.keeps("a", 0, 1, 2, 3, 4, 5)
	f, got := feedOf(s, sp)
	s.push("p1", progressOf("a", 1), progressOf("a", 4))
	runToEnd(t, f, s)
	wantIDs(t, *got, "a:started:inferred", "a:progress:0", "a:progress:1", "a:progress:2", "a:progress:3", "a:progress:4")
	for i, want := range []Origin{OriginInferred, OriginBackfill, OriginBus, OriginBackfill, OriginBackfill, OriginBus} {
		if (*got)[i].Origin != want {
			t.Errorf("%s comes from %s, want %s", (*got)[i].ID, (*got)[i].Origin, want)
		}
	}
	if p := (*got)[3]; p.Source != "etl" || gjson.GetBytes(p.Payload, "numInputRows").Int() != 1 || p.Name != "n-a" {
		t.Errorf("%+v %s", p, p.Payload)
	}
}

func TestWhatSparkHasNoMoreBecomesOneGap(t *testing.T) {
	s, sp := newScript(), &spark{}
	sp.keeps("a", 4, 5, 7, 8)
	f, got := feedOf(s, sp)
	s.push("p1", progressOf("a", 1), progressOf("a", 8)) // 0 was before the first sight: no gap
	runToEnd(t, f, s)
	wantIDs(t, *got, "a:started:inferred", "a:progress:1", "a:gap:2-3", "a:progress:4", "a:progress:5", "a:gap:6-6", "a:progress:7", "a:progress:8")
}

func TestNoAnswerMakesNoGapAndIsAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sp := newScript(), &spark{err: errors.New("unavailable")}
		sp.keeps("a", 0, 1, 2, 3, 4)
		f, got := feedOf(s, sp)
		stop := runFeed(t, f)
		s.push("p1", progressOf("a", 1), progressOf("a", 4), progressOf("a", 9))
		s.push("p2", terminatedOf("a"))
		time.Sleep(time.Hour)
		synctest.Wait()
		wantIDs(t, *got, "a:started:inferred", "a:progress:1", "a:progress:4", "a:progress:9", "a:terminated")
		sp.change(func() {}) // what was read is before what comes
		sp.change(func() { sp.err = nil })
		time.Sleep(time.Minute)
		stop()
		wantIDs(t, *got, "a:started:inferred", "a:progress:1", "a:progress:4", "a:progress:9", "a:terminated",
			"a:progress:0", "a:progress:2", "a:progress:3", "a:gap:5-8")
	})
}

// What came before the first batch stays a question until Spark answers, also over a
// restart; what it has no more is no gap.
func TestTheBeginningOfARunIsAskedForUntilItIsAnswered(t *testing.T) {
	s, sp := newScript(), &spark{err: errors.New("unavailable")}
	f, before := feedOf(s, sp)
	s.push("p1", progressOf("a", 9))
	runToEnd(t, f, s)
	again := newScript()
	now := &spark{}
	now.keeps("a", 5, 7, 9)
	next, news := feedOf(again, now)
	for _, e := range *before {
		next.Admission.Replay(e)
	}
	runToEnd(t, next, again)
	wantIDs(t, *news, "a:progress:5", "a:progress:7", "a:gap:6-6", "a:gap:8-8")
	if ids := next.Admission.unsettled(); len(ids) > 0 {
		t.Errorf("still to be asked: %v", ids)
	}
}

// A run of which Spark tells more than can be received holds up no other, and its own
// end only for as long as it runs.
func TestAnAnswerThatIsTooLargeConcernsOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sp := newScript(), &spark{tooLarge: map[string]bool{"a": true}}
		sp.set(Query{ID: "q-a", RunID: "a"}, Query{ID: "q-b", RunID: "b"})
		sp.keeps("a", 1, 2)
		sp.keeps("b", 4)
		f, got := feedOf(s, sp)
		stop := runFeed(t, f)
		s.push("p1", progressOf("a", 1), progressOf("a", 3))
		time.Sleep(10 * time.Minute)
		sp.change(func() {
			if sp.recents > 12 {
				t.Errorf("asked %d times for what is too large", sp.recents)
			}
		})
		sp.set()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		want := []string{"a:started:inferred", "b:started:inferred", "b:progress:4", "a:progress:1", "a:progress:3",
			"a:gap:2-2", "a:terminated:inferred", "b:terminated:inferred"}
		wantIDs(t, *got, want...)
		sp.change(func() { sp.tooLarge["c"] = true })
		sp.keeps("c", 1, 2, 3)
		s.push("p2", progressOf("c", 1), progressOf("c", 3), terminatedOf("c"))
		time.Sleep(10 * time.Minute)
		stop()
		wantIDs(t, *got, append(want, "c:started:inferred", "c:progress:1", "c:progress:3", "c:terminated", "c:gap:2-2")...)
	})
}

// The open batches of a run survive a restart.
func TestOpenBatchesAreRememberedOverARestart(t *testing.T) {
	s, sp := newScript(), &spark{err: errors.New("unavailable")}
	f, got := feedOf(s, sp)
	s.push("p1", progressOf("a", 1), progressOf("a", 4))
	runToEnd(t, f, s)
	for _, bySnapshot := range []bool{true, false} {
		again := newScript()
		spNow := &spark{}
		spNow.keeps("a", 2)
		next, news := feedOf(again, spNow)
		if bySnapshot {
			if ok, err := f.Admission.Snapshot(next.Admission.Restore); !ok || err != nil {
				t.Fatal(ok, err)
			}
		} else {
			for _, e := range *got {
				next.Admission.Replay(e)
			}
		}
		runToEnd(t, next, again)
		wantIDs(t, *news, "a:progress:2", "a:gap:3-3")
	}
}

func TestALostLastBatchIsFound(t *testing.T) {
	for name, last := range map[string]Raw{"idle": idleOf("a", 20), "terminated": terminatedOf("a")} {
		s, sp := newScript(), &spark{}
		sp.keeps("a", 0, 1, 2, -20)
		f, got := feedOf(s, sp)
		s.push("p1", progressOf("a", 0), progressOf("a", 1))
		s.push("p2", last)
		runToEnd(t, f, s)
		if ids := ids(*got); len(ids) < 5 || ids[3] != "a:progress:2" {
			t.Errorf("%s: %v", name, ids)
		}
	}
}

// Where a run begins nobody knows, so its first batch is asked for although the start
// was seen: a lost one leaves no jump.
// The question for a lost last batch is asked again after a crash, since it may not have
// been answered before.
func TestALostLastBatchIsFoundAfterACrash(t *testing.T) {
	for name, next := range map[string]Raw{"idle": idleOf("a", 20), "terminated": terminatedOf("a")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, sp := newScript(), &spark{}
				f, journal := feedOf(s, sp)
				s.push("p1", progressOf("a", 0))
				sp.keeps("a", 0, 1, 2)
				stop := runFeed(t, f)
				sp.change(func() { sp.err = errors.New("unavailable") })
				s.push("p2", next)
				synctest.Wait()
				stop()
				sp.change(func() { sp.err = nil })
				before := len(*journal)
				f, got := feedOf(newScript(), sp)
				for _, e := range (*journal)[:before] {
					f.Admission.Replay(e)
				}
				f.Resumed = true
				stop = runFeed(t, f)
				time.Sleep(20 * time.Second)
				stop()
				if ids := ids(*got); len(ids) < 2 || ids[0] != "a:progress:1" || ids[1] != "a:progress:2" {
					t.Errorf("before the crash %v, after it %v", *journal, ids)
				}
			})
		})
	}
}

func TestALostFirstBatchIsFound(t *testing.T) {
	for name, next := range map[string]Raw{"progress": progressOf("a", 8), "idle": idleOf("a", 20), "terminated": terminatedOf("a")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, sp := newScript(), &spark{}
				sp.set(Query{ID: "q-a", RunID: "a", Name: "n-a"})
				f, got := feedOf(s, sp)
				stop := runFeed(t, f)
				time.Sleep(time.Second)
				wantIDs(t, *got, "a:started:inferred")
				if sp.keeps("a", 7, -20); name == "progress" {
					sp.keeps("a", 7, 8)
				}
				s.push("p1", next)
				synctest.Wait()
				stop()
				if ids := ids(*got); len(ids) < 3 || ids[1] != "a:progress:7" {
					t.Errorf("%v", ids)
				}
			})
		})
	}
}

func TestOnlyTheFirstIdleAfterABatchAsks(t *testing.T) {
	s, sp := newScript(), &spark{}
	sp.keeps("a", 0, -1)
	f, _ := feedOf(s, sp)
	s.push("p1", progressOf("a", 0), idleOf("a", 1), idleOf("a", 2), idleOf("a", 3))
	runToEnd(t, f, s)
	if sp.lasts != 2 || sp.recents > 1 { // at first sight, and at the first idle
		t.Errorf("asked %d times for the last document and %d times for all", sp.lasts, sp.recents)
	}
}

func TestAHealthyRunAsksOnlyOnce(t *testing.T) {
	s, sp := newScript(), &spark{}
	sp.keeps("a", 0)
	f, _ := feedOf(s, sp)
	for batch := range int64(500) {
		s.push(fmt.Sprint("p", batch), progressOf("a", batch))
	}
	runToEnd(t, f, s)
	if sp.lasts != 1 {
		t.Errorf("asked %d times", sp.lasts)
	}
}

func TestHistoryAtFirstSightIsBackfilledWithoutAGapBeforeIt(t *testing.T) {
	s, sp := newScript(), &spark{active: []Query{{ID: "q-a", RunID: "a", Name: "n-a"}}}
	sp.keeps("a", -1, 12, 13, -2, -3)
	f, got := feedOf(s, sp)
	runToEnd(t, f, s) // nothing on the bus
	wantIDs(t, *got, "a:started:inferred", "a:progress:12", "a:progress:13", "a:idle:1767225662000", "a:idle:1767225663000")
}

// Where documents were dropped before an idle entry, the earliest known batch tells
// whether it was before the first.
func TestIdleBeforeTheEarliestBatchIsLeftOut(t *testing.T) {
	a := NewAdmission(Session{Source: "etl"})
	at := func(s int) time.Time { return time.Date(2026, 1, 1, 0, 0, s, 0, time.UTC) }
	a.admitOne(Event{ID: "b", Kind: KindProgress, RunID: "a", BatchID: 7, Time: at(10)}, true)
	told := account{answered: true, events: []Event{
		{ID: "early", Kind: KindIdle, RunID: "a", BatchID: NoBatch, Time: at(5)},
		{ID: "late", Kind: KindIdle, RunID: "a", BatchID: NoBatch, Time: at(15)},
	}}
	wantIDs(t, a.relive("a", told, nil), "late")
}

func TestANewBusIsReconciled(t *testing.T) {
	s, sp := newScript(), &spark{active: []Query{{ID: "q-a", RunID: "a", Name: "n-a"}}}
	sp.keeps("a", 0, 1, 2)
	f, got := feedOf(s, sp)
	s.push("p1", progressOf("a", 2))
	runToEnd(t, f, s)
	sp.keeps("a", 3, 4, 5)

	resumed, same := feedOf(newScript(), sp)
	resumed.Admission = f.Admission
	runToEnd(t, resumed, resumed.Stream.(*script))
	wantIDs(t, *same) // a bus that is read on brings them itself

	other, news := feedOf(newScript(), sp)
	other.Admission, other.NewBus = f.Admission, true
	runToEnd(t, other, other.Stream.(*script))
	wantIDs(t, *news, "a:progress:3", "a:progress:4", "a:progress:5")
	_ = got
}

func TestEndsThatNobodyToldAreInferred(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*spark)
		outcome Outcome
		payload string
	}{
		"stopped":   {func(*spark) {}, OutcomeStopped, `{"id":"q-a","runId":"a","exception":null,"errorClassOnException":null}`},
		"failed":    {func(s *spark) { s.failures = map[string]*Failure{"a": {Message: "boom", ErrorClass: "STREAM_FAILED"}} }, OutcomeFailed, `{"id":"q-a","runId":"a","exception":"boom","errorClassOnException":null}`},
		"forgotten": {func(s *spark) { s.forgotten = map[string]bool{"a": true} }, OutcomeDriverLost, `{"id":"q-a","runId":"a","exception":null,"errorClassOnException":null}`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, sp := newScript(), &spark{active: []Query{{ID: "q-a", RunID: "a", Name: "n-a"}}}
				f, got := feedOf(s, sp)
				stop := runFeed(t, f)
				s.push("p1", progressOf("a", 0))
				time.Sleep(time.Minute)
				sp.set()
				c.prepare(sp)
				time.Sleep(29 * time.Second)
				synctest.Wait()
				wantIDs(t, *got, "a:started:inferred", "a:progress:0")
				sp.change(func() {}) // what was read is before what comes
				time.Sleep(time.Minute)
				synctest.Wait()
				wantIDs(t, *got, "a:started:inferred", "a:progress:0", "a:terminated:inferred")
				sp.change(func() {}) // what was read is before what comes
				end := (*got)[2]
				sp.change(func() {})
				if end.Outcome != c.outcome || string(end.Payload) != c.payload || end.Origin != OriginInferred || end.Name != "n-a" {
					t.Errorf("%+v %s", end, end.Payload)
				}
				s.push("p2", terminatedOf("a")) // Spark's own follows under its own id
				time.Sleep(time.Second)
				stop()
				wantIDs(t, (*got)[3:], "a:terminated")
			})
		})
	}
}

// A run that this process has not seen active may have ended long ago.
func TestTheOutcomeOfARunThatWasForgottenMeanwhileIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, got := feedOf(newScript(), &spark{forgotten: map[string]bool{"a": true}})
		f.Admission.Replay(Event{Kind: KindStarted, RunID: "a", QueryID: "q-a", UserID: "u", SessionID: "s"})
		stop := runFeed(t, f)
		time.Sleep(time.Minute)
		stop()
		wantIDs(t, *got, "a:terminated:inferred")
		if end := (*got)[0]; end.Outcome != OutcomeUnknown {
			t.Errorf("outcome %s", end.Outcome)
		}
	})
}

func TestAnEndIsNotInferredWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sp := newScript(), &spark{active: []Query{{ID: "q-a", RunID: "a"}}}
		f, got := feedOf(s, sp)
		stop := runFeed(t, f)
		sp.change(func() { sp.err = errors.New("unavailable") })
		time.Sleep(time.Hour)
		synctest.Wait()
		wantIDs(t, *got, "a:started:inferred")
		sp.change(func() {}) // what was read is before what comes
		stop()
	})
}

func TestANewRunFirstEndsTheOldOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sp := newScript(), &spark{active: []Query{{ID: "q", RunID: "a", Name: "orders"}}}
		f, got := feedOf(s, sp)
		stop := runFeed(t, f)
		sp.keeps("a", 3)
		sp.set(Query{ID: "q", RunID: "b", Name: "orders"})
		time.Sleep(6 * time.Second)
		synctest.Wait()
		wantIDs(t, *got, "a:started:inferred") // the old run's own end may be on its way
		sp.change(func() {})                   // what was read is before what comes
		s.push("p1", Raw{Type: TypeProgress, JSON: []byte(`{"progress":{"id":"q","runId":"b","name":"orders","timestamp":"2026-01-01T00:00:00.000Z","batchId":4}}`)})
		time.Sleep(time.Second)
		stop()
		wantIDs(t, *got, "a:started:inferred", "a:progress:3", "a:terminated:inferred", "b:started:inferred", "b:progress:4")
	})
}

// Late events of an earlier run do not end the active one.
func TestALateRunDoesNotEndTheActiveOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sp := newScript(), &spark{}
		sp.set(Query{ID: "q", RunID: "b"})
		f, got := feedOf(s, sp)
		stop := runFeed(t, f)
		s.push("p1", Raw{Type: TypeIdle, JSON: []byte(`{"id":"q","runId":"a","timestamp":"2026-01-01T00:01:00.000Z"}`)})
		time.Sleep(time.Minute)
		stop()
		wantIDs(t, *got, "b:started:inferred", "a:started:inferred", "a:idle:1767225660000", "a:terminated:inferred")
	})
}

// What a query does that is first seen while the bus is open comes by the bus, as Spark
// wrote it, though Spark could be asked for it a moment earlier.
func TestOnAnOpenBusNothingIsAskedForThatIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sp := newScript(), &spark{}
		f, got := feedOf(s, sp)
		f.NewBus = true
		stop := runFeed(t, f)
		sp.keeps("a", 0)
		sp.set(Query{ID: "q-a", RunID: "a", Name: "n-a"})
		time.Sleep(6 * time.Second) // it is seen
		s.push("p1", progressOf("a", 0))
		time.Sleep(time.Second)
		stop()
		wantIDs(t, *got, "a:started:inferred", "a:progress:0")
		if origin := (*got)[1].Origin; origin != OriginBus {
			t.Errorf("came by %s", origin)
		}
	})
}

// A run that was active when the bus was opened is asked about, also where it has to wait
// for the end of the one before it.
func TestWhatANewBusOwesWaitsForTheEndOfTheRunBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sp := newScript(), &spark{}
		f, got := feedOf(s, sp)
		f.Admission.Replay(Event{Kind: KindStarted, RunID: "old", QueryID: "q", UserID: "u", SessionID: "s"})
		f.NewBus = true
		sp.recent = map[string][]string{"new": {`{"id":"q","runId":"new","timestamp":"2026-01-01T00:00:01.000Z","batchId":4,"durationMs":{"addBatch":1},"sources":[]}`}}
		sp.set(Query{ID: "q", RunID: "new"})
		stop := runFeed(t, f)
		time.Sleep(time.Minute)
		stop()
		wantIDs(t, *got, "old:terminated:inferred", "new:started:inferred", "new:progress:4")
	})
}

func TestTheFirstQuestionsAreDoneWhenAllAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp := &spark{active: []Query{{ID: "q-a", RunID: "a"}}, err: errors.New("unavailable")}
		f, _ := feedOf(newScript(), sp)
		asked := 0
		f.NewBus, f.Asked = true, func() { asked++ }
		stop := runFeed(t, f)
		time.Sleep(time.Minute)
		synctest.Wait()
		if asked != 0 {
			t.Error("done without an answer")
		}
		sp.change(func() { sp.err = nil })
		time.Sleep(time.Minute)
		stop()
		if asked != 1 {
			t.Errorf("done %d times", asked)
		}
	})
}

// A bus that is read on tells first what lies ready on it.
func TestAResumedBusIsReadBeforeSparkIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, sp := newScript(), &spark{}
		sp.set(Query{ID: "q-b", RunID: "b"})
		f, got := feedOf(s, sp)
		f.Resumed = true
		stop := runFeed(t, f)
		s.push("p1", progressOf("a", 1), terminatedOf("a"))
		time.Sleep(time.Minute)
		stop()
		wantIDs(t, *got, "a:started:inferred", "a:progress:1", "a:terminated", "b:started:inferred")
	})
}

func TestANewRunThatSaysNothingStartsAfterTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp := &spark{active: []Query{{ID: "q", RunID: "a"}}}
		f, got := feedOf(newScript(), sp)
		stop := runFeed(t, f)
		sp.set(Query{ID: "q", RunID: "b"})
		time.Sleep(time.Minute)
		stop()
		wantIDs(t, *got, "a:started:inferred", "a:terminated:inferred", "b:started:inferred")
	})
}

func TestEndAllEndsWhatRunsAndGivesUpWhatIsOpen(t *testing.T) {
	s, sp := newScript(), &spark{err: errors.New("unavailable")}
	f, got := feedOf(s, sp)
	s.push("p1", progressOf("a", 1), progressOf("a", 4), progressOf("b", 0), terminatedOf("b"))
	runToEnd(t, f, s)
	before := len(*got)
	if err := f.EndAll(t.Context(), OutcomeSessionClosed); err != nil {
		t.Fatal(err)
	}
	wantIDs(t, (*got)[before:], "a:gap:2-3", "a:terminated:inferred")
	if end := (*got)[before+1]; end.Outcome != OutcomeSessionClosed {
		t.Errorf("outcome %s", end.Outcome)
	}
	if err := f.EndAll(t.Context(), OutcomeSessionClosed); err != nil || len(*got) != before+2 {
		t.Errorf("ended twice: %v", err)
	}
}
