package bridge

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"testing"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

func openJournal(t *testing.T, dir string, o journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return j
}

func letter(sequence uint64, cause sinks.Cause) sinks.Letter {
	return sinks.Letter{
		Event: listener.Event{Sequence: sequence, ID: fmt.Sprint(sequence), Kind: listener.KindIdle, Payload: []byte(`{"id":"q"}`)}, Cause: cause, Reason: "why",
	}
}

func lettersFrom(t *testing.T, l *letters, from uint64) (list []sinks.Letter) {
	t.Helper()
	if err := l.Each(from, func(one sinks.Letter) error { list = append(list, one); return nil }); err != nil {
		t.Fatal(err)
	}
	return list
}

func sequencesOf(t *testing.T, l *letters) (all []uint64) {
	t.Helper()
	for _, one := range lettersFrom(t, l, 0) {
		all = append(all, one.Event.Sequence)
	}
	return all
}

func TestDeadLettersAreBoundedAndLast(t *testing.T) {
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := openLetters(j.State(), "events", 4, log)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []sinks.Letter{letter(9, sinks.CauseExpired), letter(1, sinks.CauseExpired), letter(2, sinks.CauseRefused)} {
		if err := l.Add(one); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Add(letter(3, sinks.CauseAlone), letter(4, sinks.CauseAlone)); err != nil { // the oldest that expired makes room
		t.Fatal(err)
	}
	if got := sequencesOf(t, l); !slices.Equal(got, []uint64{2, 3, 4, 9}) || l.count() != 4 {
		t.Errorf("letters %v, counted %d", got, l.count())
	}
	if err := l.Add(letter(5, sinks.CauseAlone), letter(6, sinks.CauseAlone)); !errors.Is(err, sinks.ErrLettersFull) || l.count() != 4 {
		t.Errorf("two more than fit: %v, counted %d", err, l.count())
	}
	again := letter(4, sinks.CauseRefused) // in its own place there is always room
	if err := errors.Join(l.Add(again), l.Add(letter(5, sinks.CauseAlone))); err != nil {
		t.Error(err)
	}
	if err := l.Add(letter(6, sinks.CauseExpired)); !errors.Is(err, sinks.ErrLettersFull) {
		t.Errorf("full of others: %v", err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}

	j = openJournal(t, dir, journal.Options{})
	if l, err = openLetters(j.State(), "events", 4, log); err != nil || l.count() != 4 {
		t.Fatalf("after a restart %d, %v", l.count(), err)
	}
	if marked, err := l.Retry([]uint64{3, 77}); err != nil || !slices.Equal(marked, []uint64{3}) {
		t.Errorf("marked %v, %v", marked, err)
	}
	list := lettersFrom(t, l, 3)
	if !list[0].Retry || list[1].Retry || list[1].Cause != sinks.CauseRefused || list[0].Event.ID != "3" || string(list[0].Event.Payload) != `{"id":"q"}` {
		t.Errorf("letters %+v", list)
	}
	if gone, err := l.Discard([]uint64{2, 3}); err != nil || !slices.Equal(gone, []uint64{2, 3}) {
		t.Errorf("dropped %v, %v", gone, err)
	}
	if gone, err := l.Discard(nil); err != nil || !slices.Equal(gone, []uint64{4, 5}) || l.count() != 0 || sequencesOf(t, l) != nil {
		t.Errorf("dropped %v, %v", gone, err)
	}
}

func TestReplaysLast(t *testing.T) {
	dir := t.TempDir()
	j, err := journal.Open(dir, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		e := listener.Event{Kind: listener.KindProgress, Source: "etl", QueryID: "q", RunID: "r", BatchID: int64(n), Name: fmt.Sprint("n", n%2)}
		if _, err := j.Append(t.Context(), listener.EncodeRecord(e)); err != nil {
			t.Fatal(err)
		}
	}
	cfg := configs.Sink{Name: "events", Match: sinks.Match{Queries: []string{"n1"}}}
	r := &replays{journal: j, sink: cfg}
	one, err := r.Ask(3, 9)
	if err != nil {
		t.Fatal(err)
	}
	two, err := r.Ask(1, 2)
	if err != nil || two.ID == one.ID {
		t.Fatalf("%+v, %+v, %v", one, two, err)
	}
	if n, err := r.Count(t.Context(), 3, 9); n != 3 || err != nil { // 4, 6, 8
		t.Errorf("counted %d, %v", n, err)
	}
	one.Next = 5
	if err := errors.Join(r.Save(one), j.Close()); err != nil {
		t.Fatal(err)
	}

	r = &replays{journal: openJournal(t, dir, journal.Options{}), sink: cfg}
	if first, ok, err := r.First(); !ok || err != nil || first != one {
		t.Errorf("first %+v, %t, %v", first, ok, err)
	}
	source, closeSource, err := r.Open(5, 9)
	if err != nil {
		t.Fatal(err)
	}
	var got []int64
	for {
		events, err := source.Next(t.Context(), 3, 1<<20)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			got = append(got, e.BatchID)
		}
	}
	if err := closeSource(); err != nil || fmt.Sprint(got) != "[4 5 6 7]" {
		t.Errorf("batches %v, %v", got, err)
	}
	if err := errors.Join(r.Finish(one.ID), r.Save(one)); err != nil { // what is finished stays so
		t.Fatal(err)
	}
	if list, err := r.Unfinished(); err != nil || len(list) != 1 || list[0] != two {
		t.Errorf("left %+v, %v", list, err)
	}
}

func TestANewSinkStartsWhereItIsTold(t *testing.T) {
	j := openJournal(t, t.TempDir(), journal.Options{})
	for range 3 {
		if _, err := j.Append(t.Context(), listener.EncodeRecord(listener.Event{Kind: listener.KindIdle})); err != nil {
			t.Fatal(err)
		}
	}
	for from, want := range map[configs.From]uint64{configs.FromNow: 4, configs.FromOldest: 1} {
		for range 2 { // the second time it is not new
			reader, err := openTape(j, string(from), from)
			if err != nil {
				t.Fatal(err)
			}
			if at, _, err := j.State().Cursor(string(from)); at != want || err != nil {
				t.Errorf("%s starts at %d, %v; want %d", from, at, err, want)
			}
			_ = reader.Close()
		}
	}
}

// More expired events at once than there is room for: the newest stay, and the sink goes
// on. What was refused is never dropped for that.
func TestMoreExpireThanThereIsRoomFor(t *testing.T) {
	j := openJournal(t, t.TempDir(), journal.Options{})
	l, err := openLetters(j.State(), "events", 4, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Add(letter(1, sinks.CauseRefused)); err != nil {
		t.Fatal(err)
	}
	var many []sinks.Letter
	for n := range uint64(10) {
		many = append(many, letter(2+n, sinks.CauseExpired))
	}
	if err := l.Add(many...); err != nil {
		t.Fatal(err)
	}
	if got := sequencesOf(t, l); !slices.Equal(got, []uint64{1, 9, 10, 11}) || l.count() != 4 {
		t.Errorf("kept %v, counts %d", got, l.count())
	}
	if err := l.Add(letter(12, sinks.CauseRefused), letter(13, sinks.CauseRefused), letter(14, sinks.CauseRefused), letter(15, sinks.CauseRefused)); !errors.Is(err, sinks.ErrLettersFull) {
		t.Errorf("add more than there is room for: %v", err)
	}
}
