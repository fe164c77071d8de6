package watch

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"sparkbridge/listener"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// event is one of the run of a query.
func event(kind listener.Kind, query, run string, payload string) listener.Event {
	return listener.Event{
		Kind: kind, Origin: listener.OriginBus, Source: "etl", QueryID: "id-" + query, RunID: run, Name: query,
		BatchID: listener.NoBatch, Time: noon, Recorded: time.Now(), Payload: []byte(payload),
	}
}

func batch(query, run string, id int64, rows int) listener.Event {
	e := event(listener.KindProgress, query, run, fmt.Sprintf(`{"batchId":%d,"numInputRows":%d}`, id, rows))
	e.BatchID = id
	return e
}

func end(query, run string, outcome listener.Outcome, class string) listener.Event {
	e := event(listener.KindTerminated, query, run, `{}`)
	e.Outcome, e.ErrorClass = outcome, class
	return e
}

func only(t *testing.T, b *Board) Query {
	t.Helper()
	list := b.Queries()
	if len(list) != 1 {
		t.Fatalf("%d queries, want one: %+v", len(list), list)
	}
	return list[0]
}

// Runs of one name are one query, and what is counted goes on over them.
func TestRunsFollowEachOther(t *testing.T) {
	b := NewBoard()
	for run := range 3 {
		name := fmt.Sprint("run", run)
		b.Observe(event(listener.KindStarted, "orders", name, `{}`), true)
		b.Observe(batch("orders", name, int64(run), 10), true)
		if q := only(t, b); !q.IsActive || q.RunID != name || q.BatchID != int64(run) {
			t.Errorf("run %d: %+v", run, q)
		}
		if run == 2 { // the end of the run before comes late
			b.Observe(end("orders", "run1", listener.OutcomeUnknown, ""), true)
			if q := only(t, b); !q.IsActive {
				t.Error("the end of an earlier run ended the present one")
			}
			continue
		}
		if run == 1 {
			continue
		}
		b.Observe(end("orders", name, listener.OutcomeFailed, "DIVIDE_BY_ZERO"), true)
		if q := only(t, b); q.IsActive || q.Outcome != listener.OutcomeFailed || q.ErrorClass != "DIVIDE_BY_ZERO" || q.Ended.IsZero() {
			t.Errorf("after the end: %+v", q)
		}
	}
	q := only(t, b)
	if q.Batches != 3 || q.Rows != 30 || q.Ends[End{listener.OutcomeFailed, "DIVIDE_BY_ZERO"}] != 1 || q.Ends[End{Outcome: listener.OutcomeUnknown}] != 1 || q.Ends[End{Outcome: listener.OutcomeStopped}] != 0 {
		t.Errorf("counts %+v", q)
	}
}

// Spark's word on an end that was inferred before is the same end.
func TestAnEndIsCountedOnce(t *testing.T) {
	b := NewBoard()
	b.Observe(event(listener.KindStarted, "orders", "r", `{}`), true)
	b.Observe(end("orders", "r", listener.OutcomeUnknown, ""), true)
	b.Observe(end("orders", "r", listener.OutcomeFailed, "X"), true)
	if q := only(t, b); q.Ends[End{Outcome: listener.OutcomeUnknown}] != 1 || q.Ends[End{listener.OutcomeFailed, "X"}] != 0 || q.Outcome != listener.OutcomeFailed {
		t.Errorf("%+v", q)
	}
}

// What the journal had before this process says how a query is, and counts nothing.
func TestOldEventsAreNoNews(t *testing.T) {
	b := NewBoard()
	b.Observe(event(listener.KindStarted, "orders", "r", `{}`), false)
	b.Observe(batch("orders", "r", 7, 10), false)
	b.Observe(event(listener.KindIdle, "orders", "r", `{}`), true)
	if q := only(t, b); q.BatchID != 7 || q.InputRows != 10 || q.Batches != 0 || q.Rows != 0 || !q.IsActive {
		t.Errorf("%+v", q)
	}
	counts := b.Counts()
	if len(counts.Events) != 1 || counts.Events[EventKey{"etl", listener.KindIdle, listener.OriginBus}] != 1 {
		t.Errorf("events %v", counts.Events)
	}
}

// Ten thousand runs of queries without names leave nothing behind, and at no time are
// more queries known than may be.
func TestManyRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBoard()
		for i := range 10_000 {
			query, run := fmt.Sprint("q", i), fmt.Sprint("r", i)
			e := batch(query, run, 0, 1)
			e.Name = ""
			b.Observe(e, true)
			done := end(query, run, listener.OutcomeStopped, "")
			done.Name = ""
			b.Observe(done, true)
			if n := len(b.queries); n > maxQueries {
				t.Fatalf("%d queries are known", n)
			}
			time.Sleep(time.Second)
		}
		if n := len(b.Queries()); n != 600 {
			t.Errorf("%d queries are shown, want those of the last ten minutes", n)
		}
		if n := b.Counts().Unlisted; n != 0 {
			t.Errorf("%d events had no room, though old queries could have gone", n)
		}
		time.Sleep(time.Hour)
		if n := len(b.Queries()); n != 0 || len(b.queries) != 0 || len(b.labels) != 0 {
			t.Errorf("after an hour there are %d queries, %d and %d behind them", n, len(b.queries), len(b.labels))
		}
	})
}

// A query that is started again and again under its name stays one.
func TestManyRunsOfOneName(t *testing.T) {
	b := NewBoard()
	for i := range 10_000 {
		e := batch("orders", fmt.Sprint("r", i), 0, 1)
		e.QueryID = fmt.Sprint("id", i)
		b.Observe(e, true)
	}
	if q := only(t, b); q.Batches != 10_000 || len(b.labels) != 1 {
		t.Errorf("%d batches, %d ids are kept", q.Batches, len(b.labels))
	}
}

func TestTooManyQueries(t *testing.T) {
	b := NewBoard()
	for i := range maxQueries + 5 {
		b.Observe(batch(fmt.Sprint("q", i), "r", 0, 1), true)
	}
	b.Observe(batch("q0", "r", 1, 1), true)
	b.Observe(batch("old", "r", 1, 1), false) // was counted by an earlier process
	b.Observe(batch(fmt.Sprint("q", maxQueries), "r", 1, 1), true)
	if list := b.Queries(); len(list) != maxQueries || list[0].Batches != 2 {
		t.Errorf("%d queries, the first has %d batches", len(list), list[0].Batches)
	}
	if n := b.Counts().Unlisted; n != 6 {
		t.Errorf("%d events without room, want 6", n)
	}
}

func TestANameThatComesLater(t *testing.T) {
	b := NewBoard()
	e := event(listener.KindStarted, "", "r", `{}`)
	e.QueryID = "id-orders"
	b.Observe(e, true)
	if q := only(t, b); q.Label != "id-orders" {
		t.Errorf("label %q", q.Label)
	}
	b.Observe(batch("orders", "r", 0, 1), true)
	e.Kind = listener.KindIdle // without the name again
	b.Observe(e, true)
	if q := only(t, b); q.Label != "orders" || q.Batches != 1 {
		t.Errorf("%+v", q)
	}
}

func TestCounts(t *testing.T) {
	b := NewBoard()
	b.Observe(event(listener.KindGap, "q", "r", `{"fromBatchId":3,"toBatchId":7}`), true)
	bus := listener.Event{Kind: listener.KindBus, Origin: listener.OriginBridge, Source: "etl", Payload: []byte(`{"state":"lost"}`)}
	b.Observe(bus, true)
	b.Observe(bus, false)
	for i := range maxClasses + 50 {
		b.Observe(end("q", "r", listener.OutcomeFailed, fmt.Sprint("CLASS_", i)), true)
	}
	c := b.Counts()
	if c.Gaps["etl"] != 1 || c.Missing["etl"] != 5 || c.Changes[ChangeKey{"etl", "lost"}] != 1 {
		t.Errorf("%+v", c)
	}
	if n := c.Ends[EndKey{"etl", End{listener.OutcomeFailed, otherClass}}]; len(c.Ends) != maxClasses+1 || n != 50 {
		t.Errorf("%d classes, %d ends of others", len(c.Ends), n)
	}
}

// A query whose failures all differ has few series for its ends.
func TestEndsOfOneQueryAreBounded(t *testing.T) {
	b := NewBoard()
	for i := range 100 {
		run := fmt.Sprint("r", i)
		b.Observe(event(listener.KindStarted, "q", run, `{}`), true)
		b.Observe(end("q", run, listener.OutcomeFailed, fmt.Sprint("CLASS_", i)), true)
	}
	q, all := only(t, b), uint64(0)
	for _, n := range q.Ends {
		all += n
	}
	if len(q.Ends) > maxQueryEnds+1 || all != 100 || q.Ends[End{listener.OutcomeFailed, otherClass}] == 0 {
		t.Errorf("%d kinds of %d ends: %v", len(q.Ends), all, q.Ends)
	}
}

func TestLabelsAreFit(t *testing.T) {
	b := NewBoard()
	b.Observe(batch("a\xffb"+strings.Repeat("ü", 500), "r", 0, 1), true)
	if q := only(t, b); len(q.Label) > longestLabel+4 || !strings.HasPrefix(q.Label, "a�b") {
		t.Errorf("label %q", q.Label)
	}
}

// recorded are events as Spark sent them, with the wrapper of the bus taken off.
func recorded(t testing.TB, pattern string) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../../listener/testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	all := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var wrapped struct{ Progress json.RawMessage }
		if json.Unmarshal(data, &wrapped) == nil && wrapped.Progress != nil {
			data = wrapped.Progress
		}
		all[filepath.Base(path)] = data
	}
	return all
}

func TestNumbersOfRecordedProgress(t *testing.T) {
	samples := recorded(t, "recorded/4.1.1/bus-progress-*.json")
	read := func(name string) Numbers {
		payload := samples[name]
		if payload == nil {
			t.Fatalf("no sample %s", name)
		}
		at, _ := time.Parse(time.RFC3339, "2026-11-30T18:37:20.857Z")
		return readNumbers(listener.Event{Kind: listener.KindProgress, BatchID: 1, Time: at, Payload: payload})
	}
	n := read("bus-progress-watermark-agg-2.json")
	if n.InputRows != 180 || *n.InputRate != 18.6 || *n.ProcessedRate != 12.8 || n.DurationMs["addBatch"] != 13342 ||
		*n.StateRows != 15 || *n.StateBytes != 4048 || !n.Watermark.IsZero() || n.Lag != nil {
		t.Errorf("%+v", n)
	}
	n = read("bus-progress-kafka-from_kafka.json")
	if n.InputRows != 1150 || n.Lag == nil || *n.Lag != 0 || *n.AvgBehind != 0 || *n.MaxBehind != 0 || n.StateRows != nil {
		t.Errorf("%+v", n)
	}
	if n = read("bus-progress-watermark-agg-6.json"); n.Watermark.IsZero() {
		t.Errorf("no watermark: %+v", n)
	}
}

func TestNumbersInOddForms(t *testing.T) {
	n := readNumbers(listener.Event{Time: noon, Payload: []byte(`{
		"inputRowsPerSecond":"NaN","processedRowsPerSecond":"Infinity","durationMs":{"addBatch":1,"mine":2},
		"eventTime":{"watermark":"2026-01-01T11:59:00.000Z"},
		"stateOperators":[{"numRowsTotal":1,"numRowsDroppedByWatermark":4},{"numRowsTotal":2}],
		"sources":[
			{"endOffset":{"t":{"0":5,"1":7}},"latestOffset":{"t":{"0":15,"1":7,"2":3}},"metrics":{"maxOffsetsBehindLatest":"10","avgOffsetsBehindLatest":"3.5"}},
			{"endOffset":"{\"t\":{\"0\":5}}","latestOffset":null,"metrics":{"maxOffsetsBehindLatest":"2"}},
			{"endOffset":{"shard":{"iteratorType":"x"}},"latestOffset":{"shard":{"iteratorType":"x"}}}]}`)})
	if n.InputRate != nil || n.ProcessedRate != nil || len(n.DurationMs) != 1 || n.WatermarkDelay != time.Minute ||
		*n.StateRows != 3 || n.StateBytes != nil || n.lateRows != 4 || *n.Lag != 13 || *n.MaxBehind != 10 || *n.AvgBehind != 3.5 {
		t.Errorf("%+v", n)
	}
}

func FuzzNumbers(f *testing.F) {
	for _, pattern := range []string{"recorded/*/bus-progress-*.json", "public/*.json"} {
		for _, payload := range recorded(f, pattern) {
			f.Add(payload)
		}
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		n := readNumbers(listener.Event{Time: noon, Payload: payload})
		for _, v := range []*float64{n.InputRate, n.ProcessedRate, n.AvgBehind, n.MaxBehind} {
			if v != nil && (*v != *v || *v-*v != 0) {
				t.Errorf("%v is no number", *v)
			}
		}
		if len(n.DurationMs) > len(Phases) {
			t.Errorf("%d phases", len(n.DurationMs))
		}
	})
}

func TestHistogram(t *testing.T) {
	var h Histogram
	if d := h.Durations(); d.Count != 0 || len(d.Upto) != len(bounds) {
		t.Errorf("empty: %+v", d)
	}
	for _, d := range []time.Duration{time.Millisecond, 2 * time.Second, time.Hour} {
		h.Add(d)
	}
	d := h.Durations()
	if d.Count != 3 || d.Sum != 3602.001 || d.Upto[.001] != 1 || d.Upto[1] != 1 || d.Upto[2.5] != 2 || d.Upto[30] != 2 {
		t.Errorf("%+v", d)
	}
}

var errNo = errors.New("no")
