package web

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/internal/watch"
	"sparkbridge/listener"
)

// life is a run: two batches with all that could be mistaken for a label, and its end.
func life(b *watch.Board, query, run, name string) {
	e := listener.Event{Kind: listener.KindProgress, Origin: listener.OriginBus, Source: "etl", QueryID: query, RunID: run, Name: name, Time: time.Now(), Recorded: time.Now()}
	for e.BatchID = range int64(2) {
		e.Payload = fmt.Appendf(nil, `{"id":%q,"runId":%q,"batchId":%d,"numInputRows":7,"durationMs":{"addBatch":5,"own-phase":1},
			"eventTime":{"watermark":"2026-01-01T11:59:00.000Z"},
			"stateOperators":[{"operatorName":"own-operator","numRowsTotal":1,"memoryUsedBytes":2,"customMetrics":{"own-metric":1}}],
			"sources":[{"description":"KafkaV2[Subscribe[own-topic]]","endOffset":{"own-topic":{"0":5,"1":7}},"latestOffset":{"own-topic":{"0":6,"1":9}}}],
			"sink":{"description":"own-sink"},"observedMetrics":{"own-observation":{"n":1}}}`, query, run, e.BatchID)
		b.Observe(e, true)
	}
	e.Kind, e.Outcome, e.ErrorClass, e.BatchID = listener.KindTerminated, listener.OutcomeFailed, "DIVIDE_BY_ZERO", listener.NoBatch
	e.Payload = fmt.Appendf(nil, `{"id":%q,"runId":%q,"exception":"own-exception"}`, query, run)
	b.Observe(e, true)
}

// series are the bridge's series, without their values.
func series(b *watch.Board) (all []string) {
	s := New(Options{Status: func() watch.Status { return watch.Status{Queries: b.Queries()} }, Counts: b.Counts, Log: newLog(0), Logger: discard()})
	for line := range strings.Lines(get(s, "/metrics").Body.String()) {
		if strings.HasPrefix(line, "sparkbridge_") {
			all = append(all, line[:strings.LastIndexByte(line, ' ')])
		}
	}
	slices.Sort(all)
	return all
}

// What a job can make many of becomes no label: runs, ids of queries that have a name,
// partitions, descriptions. Runs of one name share their series, and those of an ended
// query go.
func TestSeriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := watch.NewBoard()
		life(b, "query-0", "run-0", "orders")
		before := series(b)
		for i := 1; i < 300; i++ {
			life(b, fmt.Sprint("query-", i), fmt.Sprint("run-", i), "orders")
		}
		if after := series(b); !slices.Equal(after, before) {
			t.Errorf("%d series after 300 runs, %d after the first", len(after), len(before))
		}
		if text := strings.Join(before, "\n"); len(before) < 30 || strings.Contains(text, "own-") || strings.Contains(text, "run-") || strings.Contains(text, "query-") {
			t.Errorf("labels:\n%s", text)
		}

		time.Sleep(11 * time.Minute)
		none := series(b)
		if text := strings.Join(none, "\n"); strings.Contains(text, "orders") {
			t.Errorf("series of a query that ended eleven minutes ago:\n%s", text)
		}
		for i := range 5000 { // without names, each a query of its own
			life(b, fmt.Sprint("query-", i), "run", "")
			time.Sleep(time.Second)
		}
		if n := len(series(b)); n > len(none)+600*(len(before)-len(none)) {
			t.Errorf("%d series, of which those of ten minutes would be %d", n, 600*(len(before)-len(none)))
		}
		time.Sleep(11 * time.Minute)
		if left := series(b); !slices.Equal(left, none) {
			t.Errorf("%d series are left, want %d", len(left), len(none))
		}
	})
}
