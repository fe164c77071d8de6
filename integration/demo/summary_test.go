package main

import (
	"bytes"
	"strings"
	"testing"

	"sparkbridge/integration/servers"
	"sparkbridge/internal/lines"
)

// filled is a board on which one run is at both sinks, but for its second batch.
func filled() *board {
	b := newBoard()
	for _, e := range []event{
		{ID: "1", Type: "dev.sparkbridge.bus"},
		{ID: "2", Type: sparkType + "started", RunID: "run"},
		{ID: "3", Type: sparkType + "progress", RunID: "run"},
		{ID: "4", Type: sparkType + "terminated", RunID: "run"},
	} {
		b.add(arrival{natsSink, e, noon})
		b.add(arrival{webhookSink, e, noon})
	}
	b.add(arrival{natsSink, event{ID: "5", Type: sparkType + "progress", RunID: "run", Data: lines.Document{BatchID: 1}}, noon})
	return b
}

var ofRun = []servers.LoggedEvent{
	{Kind: "started", RunID: "run", BatchID: -1}, {Kind: "progress", RunID: "run"}, {Kind: "terminated", RunID: "run", BatchID: -1},
}

func printed(sum summary) string {
	var said bytes.Buffer
	s := &screen{w: &said}
	s.table(sum)
	s.verdict(sum)
	return said.String()
}

func TestSummaryOfWhatArrived(t *testing.T) {
	sum := summarize(filled(), ofRun)
	if err := sum.lacking(); err != nil {
		t.Error(err)
	}
	const want = `events           nats  webhook    Spark's own log
started             1        1                  1
progress            2        1                  1
terminated          1        1                  1
bus                 1        1                  -
✓ Every event in Spark's own event log has arrived at both sinks.
`
	if got := printed(sum); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}

func TestSummaryOfWhatIsMissing(t *testing.T) {
	logged := append(ofRun[:len(ofRun):len(ofRun)], servers.LoggedEvent{Kind: "progress", RunID: "run", BatchID: 1}, servers.LoggedEvent{Kind: "progress", RunID: "run", BatchID: 2})
	b := filled()
	b.add(arrival{webhookSink, event{ID: "1"}, noon})
	got := printed(summarize(b, logged))
	for _, want := range []string{"1 have not arrived at nats and 2 not at webhook", "0 at nats, 1 at webhook", "progress            2        1                  3"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q lacks %q", got, want)
		}
	}
}

func TestSummaryDemandsKinds(t *testing.T) {
	b := newBoard()
	b.add(arrival{natsSink, event{ID: "1", Type: sparkType + "started"}, noon})
	err := summarize(b, nil).lacking()
	if err == nil {
		t.Fatal("nothing is lacking")
	}
	for _, want := range []string{"no started event at webhook", "no progress event at nats", "no terminated event at webhook"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "no started event at nats") {
		t.Errorf("%q names what has arrived", err)
	}
}
