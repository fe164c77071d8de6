package bridge

import (
	"errors"
	"slices"
	"testing"

	"sparkbridge/internal/journal"
)

// A journal is looked at beside a bridge that has it open, and a sink is forgotten when
// none has.
func TestVerifyAndForget(t *testing.T) {
	j, dir, _ := tenMinutes(t, journal.Options{})
	if err := j.State().SaveCursors(map[string]uint64{"events": 4}); err != nil {
		t.Fatal(err)
	}
	if report, state, err := Verify(dir); err != nil || state || report.First != 1 || report.Next != 11 {
		t.Errorf("in use: %+v, %v, %v", report, state, err)
	}
	if err := Forget(dir, "events"); !errors.Is(err, journal.ErrLocked) {
		t.Errorf("forgotten in use: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if report, state, err := Verify(dir); err != nil || !state || report.Next != 11 {
		t.Errorf("closed: %+v, %v, %v", report, state, err)
	}
	want := []SinkHoldings{{"events", 4, 7, 0}}
	if held, err := Inspect(t.Context(), dir); err != nil || held.Running || held.Next != 11 || !slices.Equal(held.Sinks, want) {
		t.Errorf("%+v, %v", held, err)
	}
	if err := Forget(dir, "event"); !isUsage(err) {
		t.Errorf("a sink that is not known: %v", err)
	}
	if err := Forget(dir, "events"); err != nil {
		t.Error(err)
	}
	if held, err := Inspect(t.Context(), dir); err != nil || len(held.Sinks) != 0 {
		t.Errorf("afterwards: %+v, %v", held, err)
	}
}
