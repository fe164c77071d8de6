package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"sparkbridge/internal/journal"
	"sparkbridge/listener"
)

// A bridge that runs may delete what is about to be printed: that is told, and the rest
// is printed.
func TestExportGoesOnBehindWhatIsDeleted(t *testing.T) {
	dir := t.TempDir()
	j, err := journal.Open(dir, journal.Options{SegmentBytes: 600, MaxBytes: 1500})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close() //nolint:errcheck // nothing is kept
	for n := range 20 {
		e := listener.Event{ID: fmt.Sprint("r:progress:", n), Kind: listener.Progress, BatchID: int64(n), Payload: []byte(`{}`)}
		if _, err := j.Append(t.Context(), listener.EncodeRecord(e)); err != nil {
			t.Fatal(err)
		}
	}
	view, err := journal.Look(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got, gone []string
	err = eachLeft(view, 1, func(r journal.Record) error {
		got = append(got, fmt.Sprint(r.Sequence))
		if r.Sequence == 1 {
			return j.Retain(21)
		}
		return nil
	}, func(e *journal.RetiredError) { gone = append(gone, fmt.Sprint(e.From, "-", e.To)) })
	first, _ := j.Bounds()
	want := got[len(got)-int(21-first):]
	if err != nil || want[0] != fmt.Sprint(first) || got[len(got)-1] != "20" || len(gone) == 0 || !strings.HasSuffix(gone[len(gone)-1], fmt.Sprint("-", first-1)) {
		t.Errorf("%v: printed %v, told %v; the journal begins at %d", err, got, gone, first)
	}
	var out, notes bytes.Buffer
	if err := (&exporting{}).run(&out, &notes, dir); err != nil || strings.Count(out.String(), "\n") != int(21-first) || notes.Len() > 0 {
		t.Errorf("%v: printed %s, noted %s", err, &out, &notes)
	}
}
