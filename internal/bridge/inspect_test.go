package bridge

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sparkbridge/internal/journal"
	"sparkbridge/listener"
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

// What is behind the last record that can be read is told, and not taken for the end.
func TestADamagedJournal(t *testing.T) {
	j, dir, _ := tenMinutes(t, journal.Options{SegmentBytes: 700})
	if err := errors.Join(j.State().SaveCursors(map[string]uint64{"events": 4}), j.Close()); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.seg"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[len(files)-1])
	if err != nil {
		t.Fatal(err)
	}
	torn := append(slices.Clone(b), b[64:80]...) // the beginning of a record
	if err := os.WriteFile(files[len(files)-1], torn, 0o600); err != nil {
		t.Fatal(err)
	}
	if held, err := Inspect(t.Context(), dir); err != nil || held.Err() != nil || held.Torn != 16 || held.Next != 11 {
		t.Errorf("torn: %+v, %v", held, err)
	}
	if got := exported(t, dir, ""); len(got) != 10 {
		t.Errorf("torn: exported %v", got)
	}

	if err := os.Truncate(files[len(files)-1], 64); err != nil { // all of its records
		t.Fatal(err)
	}
	held, err := Inspect(t.Context(), dir)
	if err != nil || !errors.Is(held.Err(), journal.ErrMismatch) || held.Next > 10 || len(held.Sinks) != 1 || !strings.Contains(held.Damage, "records up to 10") {
		t.Errorf("cut: %+v, %v", held, err)
	}
	if got := exported(t, dir, files[len(files)-1]+" at offset 64"); len(got) != int(held.Next-1) {
		t.Errorf("cut: exported %v, the journal goes on at %d", got, held.Next)
	}

	if b, err = os.ReadFile(files[1]); err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(files[1], b, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := exported(t, dir, files[1]+" at offset"); len(got) == 0 || len(got) >= int(held.Next-1) {
		t.Errorf("damaged in the middle: exported %v", got)
	}
}

// exported are the sequences that come before an error that has a text in it.
func exported(t *testing.T, dir, want string) (got []uint64) {
	t.Helper()
	err := Export(dir, Selection{}, func(e listener.Event) error { got = append(got, e.Sequence); return nil }, nil)
	if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
		t.Errorf("exported %v, then %v; want %q", got, err, want)
	}
	return got
}
