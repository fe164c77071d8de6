package servers

import (
	"os"
	"path/filepath"
	"testing"
)

const loggedLines = `{"Event":"SparkListenerJobStart","Job ID":0}
{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryStartedEvent","id":"q","runId":"r","name":"orders","timestamp":"2026-01-02T03:04:05.006Z","jobTags":[]}
{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent","progress":{"id":"q","runId":"r","name":"orders","timestamp":"2026-01-02T03:04:06.000Z","batchId":0}}
{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryIdleEvent","id":"q","runId":"r","timestamp":"2026-01-02T03:04:16.000Z"}
{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QuerySlumberEvent","id":"q","runId":"r"}
{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryTerminatedEvent","id":"q","runId":"r","exception":null,"errorClassOnException":null}
{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent","progr`

func TestEventLogEvents(t *testing.T) {
	spark := &Spark{dir: t.TempDir()}
	requireNoError(t, os.Mkdir(spark.in("events"), 0o755))
	for name, text := range map[string]string{"local-2.inprogress": loggedLines, "local-1": `{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryIdleEvent","id":"older"}` + "\n", ".local-1.crc": "crc"} {
		requireNoError(t, os.WriteFile(filepath.Join(spark.in("events"), name), []byte(text), 0o644))
	}
	events, err := spark.EventLogEvents()
	requireNoError(t, err)
	want := []LoggedEvent{
		{Kind: "idle", ID: "older", BatchID: -1},
		{Kind: "started", ID: "q", RunID: "r", Name: "orders", BatchID: -1, Timestamp: "2026-01-02T03:04:05.006Z"},
		{Kind: "progress", ID: "q", RunID: "r", Name: "orders", BatchID: 0, Timestamp: "2026-01-02T03:04:06.000Z"},
		{Kind: "idle", ID: "q", RunID: "r", BatchID: -1, Timestamp: "2026-01-02T03:04:16.000Z"},
		{Kind: "terminated", ID: "q", RunID: "r", BatchID: -1},
	}
	if len(events) != len(want) {
		t.Fatalf("found %d events, want %d: %+v", len(events), len(want), events)
	}
	for n, event := range events {
		if len(event.JSON) == 0 {
			t.Errorf("event %d has no JSON", n)
		}
		event.JSON = nil
		if got, want := event, want[n]; got.Kind != want.Kind || got.ID != want.ID || got.RunID != want.RunID ||
			got.Name != want.Name || got.BatchID != want.BatchID || got.Timestamp != want.Timestamp {
			t.Errorf("event %d is %+v, want %+v", n, got, want)
		}
	}
}
