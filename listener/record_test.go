package listener

import (
	"bytes"
	"reflect"
	"testing"
	"time"
)

func sampleEvent() Event {
	return Event{
		ID: "r:terminated", Kind: KindTerminated, Origin: OriginBus, Source: "etl", UserID: "u", SessionID: "s",
		QueryID: "q", RunID: "r", Name: "naïve \x00 name", BatchID: NoBatch, Time: time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC),
		Outcome: OutcomeFailed, ErrorClass: "DIVIDE_BY_ZERO", Truncated: true, Payload: []byte("{ \"a\" : 1.10 }\n"),
	}
}

func TestRecordsReadBackWithTheirPlace(t *testing.T) {
	want := sampleEvent()
	at := time.Unix(5, 0)
	got, err := DecodeRecord(42, at, EncodeRecord(want))
	if err != nil {
		t.Fatal(err)
	}
	want.Sequence, want.Recorded = 42, at
	if !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
	bus, err := DecodeRecord(7, at, EncodeRecord(Event{Kind: KindBus, Source: "etl"}))
	if err != nil || bus.ID != "etl:bus:7" {
		t.Errorf("%v %+v", err, bus)
	}
}

func FuzzDecodeRecord(f *testing.F) {
	f.Add(EncodeRecord(sampleEvent()))
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{2})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := DecodeRecord(1, time.Unix(1, 0), b)
		if err != nil {
			return
		}
		again, err := DecodeRecord(1, time.Unix(1, 0), EncodeRecord(e))
		if err != nil || !bytes.Equal(again.Payload, e.Payload) || again.ID != e.ID {
			t.Errorf("%v: %+v", err, again)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	e := sampleEvent()
	e.Payload = bytes.Repeat([]byte("x"), 1500)
	for b.Loop() {
		if _, err := DecodeRecord(1, time.Time{}, EncodeRecord(e)); err != nil {
			b.Fatal(err)
		}
	}
}
