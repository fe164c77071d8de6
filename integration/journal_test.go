//go:build integration

package integration

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"sparkbridge/internal/journal"
	"sparkbridge/listener"
)

// journaled reads the whole journal of a bridge that does not run.
func journaled(t *testing.T, dir string) []listener.Event {
	t.Helper()
	if _, err := journal.Verify(dir); err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(dir, journal.Options{})
	requireNoError(t, err)
	defer func() { requireNoError(t, j.Close()) }()
	first, next := j.Bounds()
	reader, err := j.NewReader(first)
	requireNoError(t, err)
	defer reader.Close()
	var events []listener.Event
	for len(events) < int(next-first) {
		records, err := reader.Next(t.Context(), 1000, 64<<20)
		requireNoError(t, err)
		for _, r := range records {
			e, err := listener.DecodeRecord(r.Sequence, r.Time, r.Body)
			requireNoError(t, err)
			events = append(events, e)
		}
	}
	return events
}

// checkJournal holds the journal against what Spark's event log has: the same events, each
// once, and no word of a gap.
func checkJournal(t *testing.T, want []expected, events []listener.Event) {
	t.Helper()
	times := map[string]int{}
	var got []string
	for _, e := range events {
		if times[e.ID]++; times[e.ID] == 2 {
			t.Errorf("journal: %s is in it twice", e.ID)
		}
		if e.Kind == listener.KindGap || e.Kind == listener.KindUnknown {
			t.Errorf("journal: a %s event: %s", e.Kind, e.Payload)
		}
		if e.RunID != "" {
			got = append(got, e.ID)
		}
	}
	var wanted []string
	for _, e := range want {
		wanted = append(wanted, e.id)
	}
	slices.Sort(got)
	slices.Sort(wanted)
	if at := difference(wanted, got); at >= 0 {
		t.Errorf("journal: its events differ:\ngot  %s\nwant %s", from(got, at), from(wanted, at))
	}
}

// checkWire holds the journal against the bytes that Spark sent: what was on the wire is in
// the journal as it was, and nothing else passes for Spark's.
func checkWire(t *testing.T, sent []string, events []listener.Event) {
	t.Helper()
	kept := map[string]bool{}
	for _, e := range events {
		if e.Origin != listener.OriginBus {
			continue
		}
		document := string(e.Payload)
		if e.Kind == listener.KindProgress {
			document = `{"progress":` + document + `}`
		}
		kept[document] = true
	}
	for _, document := range sent {
		if !kept[document] {
			t.Errorf("journal: lacks what was on the wire: %.500s", document)
		}
		delete(kept, document)
	}
	for document := range kept {
		t.Errorf("journal: has an event that was not on the wire: %.500s", document)
	}
}

// checkSame requires of an arrival that it is the event of the journal: its bytes, its place
// in the order and the time when it was written.
func checkSame(t *testing.T, sink string, events []listener.Event, arrivals []arrival) {
	t.Helper()
	byID := map[string]listener.Event{}
	for _, e := range events {
		byID[e.ID] = e
	}
	for _, a := range arrivals {
		e, found := byID[a.id()]
		if !found {
			t.Errorf("%s: %s is not in the journal", sink, a.id())
			continue
		}
		if !bytes.Equal(a.payload, e.Payload) {
			t.Errorf("%s: payload of %s is\n%s, want\n%s", sink, a.id(), a.payload, e.Payload)
		}
		place, recorded := fmt.Sprintf("%020d", e.Sequence), e.Recorded.UTC().Format(time.RFC3339Nano)
		if a.attributes["sequence"] != place || a.attributes["recordedtime"] != recorded {
			t.Errorf("%s: %s says sequence %s of %s, want %s of %s", sink, a.id(), a.attributes["sequence"], a.attributes["recordedtime"], place, recorded)
		}
	}
}
