package bridge

import (
	"testing"
	"time"

	"sparkbridge/listener"
)

func TestLossesBecomeGaps(t *testing.T) {
	var l losses
	if gaps := l.gaps(time.Now()); len(gaps) != 0 {
		t.Errorf("nothing lost: %v", gaps)
	}
	add := func(sequence uint64, kind listener.Kind, run, name string, batch int64) {
		l.add(listener.Event{Sequence: sequence, Kind: kind, QueryID: "q-" + run, RunID: run, Name: name, BatchID: batch, Source: "etl", UserID: "u", SessionID: "s"})
	}
	add(3, listener.KindStarted, "a", "", listener.NoBatch)
	add(4, listener.KindProgress, "a", "orders", 7)
	add(5, listener.KindTerminated, "b", "", listener.NoBatch)
	add(6, listener.KindBus, "", "", listener.NoBatch)
	add(7, listener.KindProgress, "a", "orders", 9)
	add(8, listener.KindIdle, "a", "", listener.NoBatch)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	gaps := l.gaps(at)
	if len(gaps) != 2 {
		t.Fatalf("%d gaps", len(gaps))
	}
	for i, want := range []struct {
		id, name, payload string
		sequence          uint64
	}{
		{"b:gap:s5-5", "", `{"id":"q-b","runId":"b","name":null,"fromBatchId":null,"toBatchId":null,"reason":"retention","timestamp":"2026-01-02T03:04:05.000Z","events":1}`, 5},
		{"a:gap:7-9", "orders", `{"id":"q-a","runId":"a","name":"orders","fromBatchId":7,"toBatchId":9,"reason":"retention","timestamp":"2026-01-02T03:04:05.000Z","events":4}`, 8},
	} {
		e := gaps[i]
		if e.ID != want.id || e.Name != want.name || string(e.Payload) != want.payload || e.Sequence != want.sequence ||
			e.Kind != listener.KindGap || e.Origin != listener.OriginBridge || e.Source != "etl" || e.SessionID != "s" || e.BatchID != listener.NoBatch || !e.Recorded.Equal(at) {
			t.Errorf("gap %d: %+v %s", i, e, e.Payload)
		}
	}
}
