package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sparkbridge/internal/lines"
)

// recorded is what a real server sent.
func recorded(t *testing.T, file string) lines.Document {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var d lines.Document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

const sparkType = "org.apache.spark.sql.streaming.query."

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.FixedZone("east", 3600))
	both = [sinkCount]bool{true, true}
)

func TestLine(t *testing.T) {
	failed, stateful := recorded(t, "terminated.json"), recorded(t, "progress.json")
	for _, c := range []struct {
		at    [sinkCount]bool
		event event
		want  string
	}{
		{both, event{Type: sparkType + "started", Subject: "orders", RunID: "b8908c12-d442-4335-9be1-00c06e56f370"},
			"12:00:00 nats✓ webhook✓ started    orders   run b8908c12…"},
		{both, event{Type: sparkType + "progress", Subject: "visits", Data: stateful},
			"12:00:00 nats✓ webhook✓ progress   visits   batch 5     60 rows   20.9/s  2.9 s, 12 in state, watermark 19:16:57"},
		{both, event{Type: sparkType + "progress", Subject: "visits", Data: lines.Document{BatchID: 1234, NumInputRows: 5}},
			"12:00:00 nats✓ webhook✓ progress   visits   batch 1234    5 rows      -/s      -"},
		{both, event{Type: sparkType + "idle", Subject: "files"},
			"12:00:00 nats✓ webhook✓ idle       files    no new data"},
		{[sinkCount]bool{natsSink: true}, event{Type: sparkType + "terminated", Subject: "payments", Outcome: "failed", Data: failed},
			`12:00:00 nats✓ webhook… terminated payments failed: [USER_RAISED_EXCEPTION] boom ü "q" SQLSTATE: P0001`},
		{[sinkCount]bool{webhookSink: true}, event{Type: sparkType + "terminated", Subject: "orders", Outcome: "stopped"},
			"12:00:00 nats… webhook✓ terminated orders   stopped"},
		{both, event{Type: sparkType + "terminated", Subject: "q", Outcome: "failed", Data: lines.Document{Exception: "java.lang.OutOfMemoryError: Java heap space\n\tat x"}},
			"12:00:00 nats✓ webhook✓ terminated q        failed: java.lang.OutOfMemoryError: Java heap space"},
		{both, event{Type: "dev.sparkbridge.gap", Subject: "orders", Data: lines.Document{FromBatchID: 3, ToBatchID: 5, Reason: "not_received"}},
			"12:00:00 nats✓ webhook✓ gap        orders   batches 3 to 5: not_received"},
		{both, event{Type: "dev.sparkbridge.bus", Subject: "demo", Data: lines.Document{State: "waiting", Reason: "for the\nserver"}},
			"12:00:00 nats✓ webhook✓ bus        demo     waiting for the server"},
		{both, event{Type: "dev.sparkbridge.bus", Subject: "demo", Data: lines.Document{State: "attached", Reason: "events flow"}},
			"12:00:00 nats✓ webhook✓ bus        demo     attached: events flow"},
		{both, event{Type: sparkType + "unknown", Subject: "a name of more than twenty \x1b[31mcharacters"},
			"12:00:00 nats✓ webhook✓ unknown    a name of more than… org.apache.spark.sql.streaming.query.unknown"},
	} {
		r := row{event: c.event, time: noon, at: c.at}
		if got := new(screen).line(r); got != c.want {
			t.Errorf("got\n%q, want\n%q", got, c.want)
		}
		coloured := (&screen{colours: true}).line(r)
		if got := withoutColours(coloured); got != c.want || !strings.Contains(coloured, "\x1b[") {
			t.Errorf("with colours it is\n%q, want\n%q", coloured, c.want)
		}
	}
}

// withoutColours knows only what paint adds.
func withoutColours(text string) string {
	for _, how := range []lines.Style{lines.Bold, lines.Dim, lines.Red, lines.BoldRed, lines.Green, lines.Yellow, lines.Magenta, lines.Cyan, "0"} {
		text = strings.ReplaceAll(text, "\x1b["+string(how)+"m", "")
	}
	return text
}

// TestLineLeavesNothingForTheTerminal gives a name and a message that would move its cursor.
func TestLineLeavesNothingForTheTerminal(t *testing.T) {
	e := event{Type: sparkType + "terminated", Subject: "\x1b[2Jq\n", Outcome: "failed", Data: lines.Document{Exception: "a\x1b]0;b\ac\u009b31md\nsecond"}}
	got := new(screen).line(row{event: e, time: noon, at: both})
	if i := strings.IndexFunc(got, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }); i >= 0 {
		t.Errorf("%q has a control character", got)
	}
	if strings.Contains(got, "second") {
		t.Errorf("%q has the second line of the message", got)
	}
}
