package bridge

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

var update = flag.Bool("update", false, "write the golden folder of this version anew")

// goldenFolder is a journal's folder as the first version that has dead letters leaves
// it. It stays as it is: a version that keeps something in another form gets a folder
// of its own, and reads this one too.
const goldenFolder = "testdata/folder-1"

var (
	goldenTime  = time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	goldenPoint = connect.ResumePoint{
		UserID: "u", SessionID: sessionID, ServerSessionID: "s", OperationID: "o", LastResponseID: "r", Added: true,
	}
	goldenReplay = sinks.Replay{ID: "c2b1x", From: 5, To: 13, Next: 7}
)

// goldenEvents are of each kind, with the sequences 1 to 16.
func goldenEvents() (events []listener.Event) {
	add := func(e listener.Event) {
		e.Sequence, e.Recorded = uint64(len(events)+1), goldenTime.Add(time.Duration(len(events))*time.Second)
		e.Source, e.UserID, e.SessionID, e.Time = "etl", "u", sessionID, goldenTime.Add(-time.Second)
		events = append(events, e)
	}
	run := func(e listener.Event) {
		e.QueryID, e.RunID, e.Name = "q-1", "r-1", "żółte orders"
		add(e)
	}
	add(listener.Event{ID: "etl:bus:1", Kind: listener.KindBus, Origin: listener.OriginBridge, BatchID: listener.NoBatch, Payload: []byte(`{"state":"attached"}`)})
	run(listener.Event{ID: "r-1:started:inferred", Kind: listener.KindStarted, Origin: listener.OriginInferred, BatchID: listener.NoBatch, Payload: []byte(`{"id":"q-1"}`)})
	for batch := range int64(9) {
		run(listener.Event{ID: fmt.Sprint("r-1:progress:", batch), Kind: listener.KindProgress, Origin: listener.OriginBus, BatchID: batch, Payload: fmt.Appendf(nil, `{ "batchId" : %d, "big": 90071992547409931 }`, batch)})
	}
	run(listener.Event{ID: "r-1:progress:9", Kind: listener.KindProgress, Origin: listener.OriginBackfill, BatchID: 9, Truncated: true, Payload: []byte(`{"batchId":9}`)})
	run(listener.Event{ID: "r-1:idle:1772600767000", Kind: listener.KindIdle, Origin: listener.OriginPoll, BatchID: listener.NoBatch, Payload: []byte(`{}`)})
	run(listener.Event{ID: "r-1:gap:10-11", Kind: listener.KindGap, Origin: listener.OriginBridge, BatchID: listener.NoBatch, Payload: []byte(`{"fromBatchId":10,"toBatchId":11}`)})
	run(listener.Event{ID: "r-1:terminated", Kind: listener.KindTerminated, Origin: listener.OriginClient, BatchID: listener.NoBatch, Outcome: listener.OutcomeFailed, ErrorClass: "DIVIDE_BY_ZERO", Payload: []byte(`{"exception":"/ by zero"}`)})
	add(listener.Event{ID: "r-2:type7:x", Kind: listener.KindUnknown, Origin: listener.OriginBus, BatchID: listener.NoBatch, Payload: []byte(`"what"`)})
	return events
}

func goldenLetters() []sinks.Letter {
	e := goldenEvents()
	return []sinks.Letter{
		{Event: e[1], Cause: sinks.CauseRefused, Reason: "answered 400", Attempts: 1, Time: goldenTime},
		{Event: e[4], Cause: sinks.CauseAlone, Reason: "failed alone", Attempts: 99, Time: goldenTime, Retry: true},
		{Event: e[14], Cause: sinks.CauseExpired, Reason: "older than 1h0m0s", Time: goldenTime},
	}
}

// goldenAdmission knows what goldenEvents tell, but for the end of the run: what has
// ended is forgotten after a day.
func goldenAdmission() *listener.Admission {
	a := listener.NewAdmission(listener.Session{Source: "etl", UserID: "u", SessionID: sessionID})
	for _, e := range goldenEvents() {
		if e.Kind != listener.KindTerminated {
			a.Replay(e)
		}
	}
	return a
}

func writeGoldenFolder(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(goldenFolder); err != nil {
		t.Fatal(err)
	}
	at, events, log := goldenTime, goldenEvents(), slog.New(slog.DiscardHandler)
	j, err := journal.Open(goldenFolder, journal.Options{SegmentBytes: 600, MaxBytes: 2000, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		at = e.Recorded
		if _, err := j.Append(t.Context(), listener.EncodeRecord(e)); err != nil {
			t.Fatal(err)
		}
	}
	dead, err := openLetters(j.State(), "events", 10, log)
	if err != nil {
		t.Fatal(err)
	}
	m := &memory{journal: j, source: "etl"}
	for _, err := range []error{
		j.State().SaveCursors(map[string]uint64{"events": 14, "lake": 3}),
		dead.Add(goldenLetters()...),
		(&replays{journal: j, sink: configs.Sink{Name: "events"}}).put(goldenReplay),
		m.Save(goldenPoint), m.note(goldenAdmission()),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	lake := spoolOfSink(t, j, "lake")
	if _, err := lake.Next(t.Context(), 2, 1<<20); err != nil { // 3 is in hand
		t.Fatal(err)
	}
	before := j.Retiring(17)
	if err := errors.Join(lake.forfeit(t.Context(), before), j.Retain(before), lake.Close(), j.Close(), os.Remove(filepath.Join(goldenFolder, "lock"))); err != nil {
		t.Fatal(err)
	}
}

func spoolOfSink(t *testing.T, j *journal.Journal, sink string) *spool {
	t.Helper()
	reader, err := openTape(j, sink, configs.FromOldest)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openSpool(j, reader, sink, sinks.Match{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What a released version has left in its folder, every later one must go on from.
func TestGoldenFolder(t *testing.T) {
	if *update {
		writeGoldenFolder(t)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(goldenFolder)); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Verify(dir); err != nil {
		t.Error(err)
	}
	j := openJournal(t, dir, journal.Options{})
	first, next := j.Bounds()
	if first < 4 || next != 17 {
		t.Fatalf("the journal holds %d to %d", first, next)
	}
	events, err := readJournal(j, first)
	if want := goldenEvents()[first-1:]; err != nil || !reflect.DeepEqual(events, want) {
		t.Errorf("events, %v\n got %+v\nwant %+v", err, events, want)
	}
	dead, err := openLetters(j.State(), "events", 10, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if got := lettersFrom(t, dead, 0); !reflect.DeepEqual(got, goldenLetters()) {
		t.Errorf("dead letters\n got %+v\nwant %+v", got, goldenLetters())
	}
	if got, ok, err := (&replays{journal: j, sink: configs.Sink{Name: "events"}}).First(); got != goldenReplay || !ok || err != nil {
		t.Errorf("replay %+v, %t, %v", got, ok, err)
	}
	m := &memory{journal: j, source: "etl"}
	if got, ok, err := m.Load(); got != goldenPoint || !ok || err != nil {
		t.Errorf("resume point %+v, %t, %v", got, ok, err)
	}
	a := listener.NewAdmission(listener.Session{Source: "etl", UserID: "u", SessionID: sessionID})
	if err := m.recall(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if got, want := snapshotOf(t, a), snapshotOf(t, goldenAdmission()); got != want {
		t.Errorf("marks\n got %s\nwant %s", got, want)
	}
	checkGoldenLosses(t, j, first)
}

// checkGoldenLosses checks what the sink lake lost: 3 while it had it in hand, and
// what follows up to the first that is left.
func checkGoldenLosses(t *testing.T, j *journal.Journal, first uint64) {
	t.Helper()
	lake := spoolOfSink(t, j, "lake")
	defer lake.Close() //nolint:errcheck // only read from
	got := drainTo(t, lake, 16)
	want := []string{"r-1:gap:0-0", fmt.Sprintf("r-1:gap:1-%d", first-4)}
	for _, e := range goldenEvents()[first-1:] {
		want = append(want, e.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the sink lake gets\n     %v\nwant %v", got, want)
	}
}

func snapshotOf(t *testing.T, a *listener.Admission) (text string) {
	t.Helper()
	if _, err := a.Snapshot(func(blob []byte) error { text = string(blob); return nil }); err != nil {
		t.Fatal(err)
	}
	return text
}
