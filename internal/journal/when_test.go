package journal

import (
	"testing"
	"time"
)

func TestWhen(t *testing.T) {
	clock := time.Unix(1000, 0)
	j := mustOpen(t, quickDir(t), Options{SegmentBytes: 200, MaxBytes: 1, Now: func() time.Time { return clock }})
	defer j.Close()
	want := func(sequence uint64, at time.Time) {
		t.Helper()
		if got, err := j.When(sequence); err != nil || !got.Equal(at) {
			t.Errorf("record %d was taken at %s, %v; want %s", sequence, got, err, at)
		}
	}
	want(1, time.Time{})
	for i := range 10 {
		clock = time.Unix(1000+10*int64(i), 0)
		mustAppend(t, j, "one record of a group", "and another one")
	}
	for i := range 20 {
		want(uint64(i+1), time.Unix(1000+10*int64(i/2), 0))
	}
	want(21, time.Time{})
	if err := j.Retain(15); err != nil {
		t.Fatal(err)
	}
	if first, _ := j.Bounds(); first == 1 {
		t.Fatal("nothing was deleted")
	}
	want(1, j.Stats().Oldest)
}
