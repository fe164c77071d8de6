package sinks_test

import (
	"reflect"
	"testing"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

func TestLettersKeepTheirEvent(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	want := sinks.Letter{
		Event: listener.Event{
			Sequence: 7, Recorded: at, ID: "r:progress:1", Kind: listener.KindProgress, Origin: listener.OriginBus, Source: "etl", QueryID: "q", RunID: "r",
			Name: "żółć", BatchID: 1, Time: at, Payload: []byte("{\"a\":1.10}\xff"),
		},
		Cause: sinks.CauseAlone, Reason: "why", Attempts: 3, Time: at, Retry: true,
	}
	blob, err := sinks.EncodeLetter(want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := sinks.DecodeLetter(blob); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
}

// What lies on the disk may be anything.
func FuzzDecodeLetter(f *testing.F) {
	blob, err := sinks.EncodeLetter(sinks.Letter{Event: listener.Event{Sequence: 1, Kind: listener.KindIdle, Payload: []byte("{}")}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(blob)
	f.Add([]byte(`{"record":"AQA="}`))
	f.Fuzz(func(t *testing.T, blob []byte) {
		l, err := sinks.DecodeLetter(blob)
		if err != nil {
			return
		}
		again, err := sinks.EncodeLetter(l)
		if err != nil {
			t.Skip() // years that JSON has no form for
		}
		if _, err := sinks.DecodeLetter(again); err != nil {
			t.Errorf("%q became %q: %v", blob, again, err)
		}
	})
}
