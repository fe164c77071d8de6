package bridge

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// tenMinutes is a journal of ten batches, one a minute, of two queries in turn.
func tenMinutes(t *testing.T, o journal.Options) (*journal.Journal, string, time.Time) {
	t.Helper()
	dir, began := t.TempDir(), time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	clock := began
	o.Now = func() time.Time { return clock }
	j, err := journal.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() }) // nothing is kept
	for n := range 10 {
		clock = began.Add(time.Duration(n) * time.Minute)
		e := listener.Event{ID: fmt.Sprint("r:progress:", n), Kind: listener.KindProgress, Name: []string{"orders", "clicks"}[n%2], BatchID: int64(n), Payload: []byte(`{}`)}
		if _, err := j.Append(t.Context(), listener.EncodeRecord(e)); err != nil {
			t.Fatal(err)
		}
	}
	return j, dir, began
}

func TestExport(t *testing.T) {
	_, dir, began := tenMinutes(t, journal.Options{})
	for name, c := range map[string]struct {
		Selection
		want []uint64
	}{
		"all":           {Selection{}, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
		"sequences":     {Selection{First: 3, End: 6}, []uint64{3, 4, 5}},
		"times":         {Selection{Since: began.Add(6 * time.Minute), Until: began.Add(8 * time.Minute)}, []uint64{7, 8}},
		"a query":       {Selection{First: 7, Match: sinks.Match{Queries: []string{"ord*"}}}, []uint64{7, 9}},
		"of other kind": {Selection{Match: sinks.Match{Kinds: []listener.Kind{listener.KindTerminated}}}, nil},
	} {
		var got []uint64
		err := Export(dir, c.Selection, func(e listener.Event) error { got = append(got, e.Sequence); return nil }, nil)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
	full := errors.New("disk full")
	if err := Export(dir, Selection{}, func(listener.Event) error { return full }, nil); !errors.Is(err, full) {
		t.Errorf("%v", err)
	}
}

// A bridge that runs may delete what is about to be exported: that is told, and the rest
// comes.
func TestExportGoesOnBehindWhatIsDeleted(t *testing.T) {
	j, dir, _ := tenMinutes(t, journal.Options{SegmentBytes: 300, MaxBytes: 700})
	view, err := journal.Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	var gone []journal.RetiredError
	err = new(Selection).export(view, func(e listener.Event) error {
		if got = append(got, e.Sequence); e.Sequence == 1 {
			return j.Retain(11)
		}
		return nil
	}, func(e *journal.RetiredError) { gone = append(gone, *e) })
	first, _ := j.Bounds()
	if err != nil || len(gone) == 0 || gone[len(gone)-1].To != first-1 || got[len(got)-int(11-first)] != first || got[len(got)-1] != 10 {
		t.Errorf("%v: exported %v, told %v; the journal begins at %d", err, got, gone, first)
	}
}
