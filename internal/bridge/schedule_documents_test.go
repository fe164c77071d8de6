package bridge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"sparkbridge/listener"
)

// largeBytes is more than one message may have where a schedule wants that.
const largeBytes = 300 << 10

func (q *played) head(at time.Time, batch int64) string {
	name := "null"
	if q.name != "" {
		name = `"` + q.name + `"`
	}
	return fmt.Sprintf(`{"id":"%s","runId":"%s","name":%s,"timestamp":"%s","batchId":%d,"batchDuration":120,`, q.id, q.run.id, name, stamp(at), batch)
}

func sinkName(large bool) string {
	if large {
		return strings.Repeat("x", largeBytes)
	}
	return "ConsoleTable$@31f342ec"
}

// progress is the next batch as the bus tells it.
func (q *played) progress(at time.Time, large bool) string {
	return q.head(at, q.batch) + fmt.Sprintf(`"numInputRows":7,"inputRowsPerSecond":3.5,"processedRowsPerSecond":7.0,"durationMs":{"addBatch":50,"triggerExecution":120},"stateOperators":[],`+
		`"sources":[{"description":"rate","startOffset":{"0":%[1]d},"endOffset":{"0":%[2]d},"latestOffset":{"0":%[2]d},"numInputRows":7,"inputRowsPerSecond":3.5,"processedRowsPerSecond":7.0}],`+
		`"sink":{"description":"%[3]s","numOutputRows":7}}`, 7*q.batch, 7*q.batch+7, sinkName(large))
}

// document is the next batch, or a trigger that found nothing, as recent_progress has
// it.
func (q *played) document(at time.Time, idle, large bool) string {
	rows, did := 7, `"addBatch":50,`
	if idle {
		rows, did = 0, ""
	}
	return q.head(at, q.batch) + fmt.Sprintf(`"durationMs":{%[4]s"triggerExecution":120},"eventTime":{},"stateOperators":[],`+
		`"sources":[{"description":"rate","startOffset":"{\"0\":%[1]d}","endOffset":"{\"0\":%[2]d}","latestOffset":"{\"0\":%[2]d}","numInputRows":%[5]d,"inputRowsPerSecond":3.5,"processedRowsPerSecond":7.0,"metrics":{}}],`+
		`"sink":{"description":"%[3]s","numOutputRows":7,"metrics":{}},"observedMetrics":{}}`, 7*q.batch, 7*q.batch+7, sinkName(large), did, rows)
}

// The played job speaks both dialects as Spark does, so a batch is the same in a
// journal whichever way it took.
func TestPlayedDialectsAgree(t *testing.T) {
	q := &played{id: "q", name: "n", batch: 3, run: &run{id: "q-r1"}}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	e, err := listener.FromRecentProgress([]byte(q.document(at, false, false)), listener.OriginBackfill)
	if err != nil || e.Kind != listener.KindProgress || string(e.Payload) != q.progress(at, false) {
		t.Errorf("%v\n got %s\nwant %s", err, e.Payload, q.progress(at, false))
	}
	e, err = listener.FromRecentProgress([]byte(q.document(at, true, false)), listener.OriginBackfill)
	if want := `{"id":"q","runId":"q-r1","timestamp":"2026-01-02T03:04:05.006Z"}`; err != nil || e.Kind != listener.KindIdle || string(e.Payload) != want {
		t.Errorf("%v\n got %s\nwant %s", err, e.Payload, want)
	}
}
