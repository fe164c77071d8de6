package bridge

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// tight is a journal of small segments that keeps little.
func tight(t *testing.T, dir string, maxBytes int64) *journal.Journal {
	t.Helper()
	return openJournal(t, dir, journal.Options{SegmentBytes: 1000, MaxBytes: maxBytes})
}

// spoolOf opens a spool at a cursor.
func spoolOf(t *testing.T, j *journal.Journal, log *lines, match sinks.Match) *spool {
	t.Helper()
	reader, err := openTape(j, "events", configs.FromOldest)
	if err != nil {
		t.Fatal(err)
	}
	s, err := openSpool(j, reader, "events", match, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// drainTo reads until a sequence was handed out.
func drainTo(t *testing.T, s *spool, last uint64) (ids []string) {
	t.Helper()
	for {
		events, err := s.Next(t.Context(), 4, 1<<20)
		var lost *sinks.LostError
		if errors.As(err, &lost) {
			ids = append(ids, fmt.Sprintf("lost %d-%d", lost.From, lost.To))
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			ids = append(ids, e.ID)
			if e.Sequence == last {
				return ids
			}
		}
	}
}

// What retention takes before a sink has read it is named, by run and once, and nothing
// of it is handed out any more.
func TestLossesAreNamedBeforeTheyHappen(t *testing.T) {
	dir, log := t.TempDir(), &lines{}
	j, err := journal.Open(dir, journal.Options{SegmentBytes: 1000, MaxBytes: 3000})
	if err != nil {
		t.Fatal(err)
	}
	for batch := range int64(20) {
		put(t, j, progressOf("a", batch), progressOf("b", batch))
	}
	s := spoolOf(t, j, log, sinks.Match{Queries: []string{"a"}})
	if events, err := s.Next(t.Context(), 4, 1<<20); err != nil || len(events) != 4 { // a 0, b 0, a 1, b 1
		t.Fatal(events, err)
	}
	before := j.Retiring(41)
	if before < 8 || before > 35 {
		t.Fatalf("the journal would begin at %d", before)
	}
	for range 2 { // the second time nothing more is lost
		if err := s.forfeit(t.Context(), before); err != nil {
			t.Fatal(err)
		}
	}
	if log.count("events lost to retention") != 1 || log.count(fmt.Sprintf("from=5 to=%d", before-1)) != 1 {
		t.Errorf("log %s", log)
	}
	if err := j.Retain(before); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil { // killed before the gap was delivered
		t.Fatal(err)
	}

	j = tight(t, dir, 3000)
	if err := j.State().SaveCursors(map[string]uint64{"events": 5}); err != nil {
		t.Fatal(err)
	}
	s = spoolOf(t, j, log, sinks.Match{Queries: []string{"a"}})
	got := drainTo(t, s, 40)
	if !strings.HasPrefix(got[0], "a:gap:2-") || !slices.Contains(got, "a:progress:19") || slices.Contains(got, "a:progress:2") || strings.Contains(fmt.Sprint(got), "b:gap") {
		t.Errorf("handed out %v", got)
	}
	first, _ := j.Bounds()
	var to int64
	if _, err := fmt.Sscanf(got[0], "a:gap:2-%d", &to); err != nil || uint64(2*to+1) >= first || uint64(2*to+3) < first {
		t.Errorf("the gap ends at batch %d, and the journal begins at %d", to, first)
	}
}

// What is told to be lost while the reader has it already is not handed out.
func TestWhatIsForfeitedIsNotHandedOut(t *testing.T) {
	log := &lines{}
	j := tight(t, t.TempDir(), 3000)
	for batch := range int64(40) {
		put(t, j, progressOf("a", batch))
	}
	if err := j.State().SaveCursors(map[string]uint64{"events": 1}); err != nil {
		t.Fatal(err)
	}
	s := spoolOf(t, j, log, sinks.Match{})
	read, err := s.tape.Next(t.Context(), 40, 1<<20)
	if err != nil || len(read) == 0 {
		t.Fatal(read, err)
	}
	last := read[len(read)-1].Sequence
	if err := s.forfeit(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if left := s.handOut(read); len(left) != 2 || left[0].Kind != listener.KindGap || left[1].Sequence != last {
		t.Errorf("handed out %d events, want the gap and then the one that is left", len(left))
	}
	if rest := s.takeGaps(); len(rest) != 0 {
		t.Errorf("the gap is handed out twice: %v", rest)
	}
}

// What a sink has read and not delivered is lost only if the bridge ends before it is,
// and is named by the next one then; what was delivered is not.
func TestWhatWasInHandIsNamedByTheNextBridge(t *testing.T) {
	for name, c := range map[string]struct {
		cursor uint64
		want   string
	}{
		"some of it": {7, "a:gap:6-"}, "all was delivered": {41, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir, log := t.TempDir(), &lines{}
			j, err := journal.Open(dir, journal.Options{SegmentBytes: 1000, MaxBytes: 3000})
			if err != nil {
				t.Fatal(err)
			}
			for batch := range int64(40) {
				put(t, j, progressOf("a", batch))
			}
			s := spoolOf(t, j, log, sinks.Match{})
			drainTo(t, s, 40)
			if err := j.State().SaveCursors(map[string]uint64{"events": 5}); err != nil {
				t.Fatal(err)
			}
			before := j.Retiring(41)
			if err := errors.Join(s.forfeit(t.Context(), before), j.Retain(before)); err != nil {
				t.Fatal(err)
			}
			if log.String() != "" || s.gone.Load() != 0 {
				t.Errorf("nothing is lost yet: %s", log)
			}
			if err := errors.Join(j.State().SaveCursors(map[string]uint64{"events": c.cursor}), j.Close()); err != nil {
				t.Fatal(err)
			}

			for range 2 { // the second time it was killed before the gap was delivered
				j := tight(t, dir, 3000)
				s := spoolOf(t, j, log, sinks.Match{})
				put(t, j, progressOf("a", 99))
				_, next := j.Bounds()
				got := drainTo(t, s, next-1)
				if want := fmt.Sprint(c.want, before-2); c.want != "" && got[0] != want {
					t.Errorf("handed out %v, want %s first", got, want)
				}
				if c.want == "" && len(got) != int(next-c.cursor) {
					t.Errorf("handed out %v", got)
				}
				if err := j.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if got, want := log.count("they were not delivered when the bridge ended"), min(1, len(c.want)); got != want {
				t.Errorf("told %d times: %s", got, log)
			}
		})
	}
}

// A sink that was away when its events went is told of by the log: nobody knows any more
// what they were.
func TestASinkThatComesBackTooLate(t *testing.T) {
	log := &lines{}
	j := tight(t, t.TempDir(), 3000)
	if err := j.State().SaveCursors(map[string]uint64{"events": 1}); err != nil {
		t.Fatal(err)
	}
	for batch := range int64(40) {
		put(t, j, progressOf("a", batch))
	}
	if err := j.Retain(41); err != nil {
		t.Fatal(err)
	}
	s, first := spoolOf(t, j, log, sinks.Match{}), j.Stats().First
	if err := s.forfeit(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	got := drainTo(t, s, 40)
	if got[0] != fmt.Sprintf("a:progress:%d", first-1) || log.count(fmt.Sprintf("from=1 to=%d", first-1)) != 1 {
		t.Errorf("handed out %v, logged %s", got, log)
	}
}

// A reader that is faster than retention loses nothing, and nothing is named.
func TestNothingIsLostThatWasRead(t *testing.T) {
	log := &lines{}
	j := tight(t, t.TempDir(), 3000)
	for batch := range int64(40) {
		put(t, j, progressOf("a", batch))
	}
	s := spoolOf(t, j, log, sinks.Match{})
	drainTo(t, s, 40)
	before := j.Retiring(41)
	if err := errors.Join(s.forfeit(t.Context(), before), j.Retain(before)); err != nil {
		t.Fatal(err)
	}
	put(t, j, progressOf("a", 40))
	if got := drainTo(t, s, 41); !slices.Equal(got, []string{"a:progress:40"}) || log.String() != "" {
		t.Errorf("handed out %v, logged %s", got, log)
	}
}

// With drop_oldest a sink that is far behind gets gap events, in the order of its
// queries, and then what is left.
func TestDropOldestTellsTheSink(t *testing.T) {
	j := tight(t, t.TempDir(), 3000)
	if err := j.State().SaveCursors(map[string]uint64{"events": 1}); err != nil {
		t.Fatal(err)
	}
	for batch := range int64(40) {
		put(t, j, progressOf("a", batch))
	}
	log := &lines{}
	o := &outlet{name: "events", spool: spoolOf(t, j, log, sinks.Match{})}
	k := &keeper{cfg: configs.Journal{WhenFull: configs.WhenFullDropOldest, MaxBytes: 3000}, journal: j, outlets: []*outlet{o}, log: slog.New(slog.NewTextHandler(log, nil))}
	if err := errors.Join(k.retain(t.Context()), k.room(t.Context())); err != nil {
		t.Fatal(err)
	}
	first, _ := j.Bounds()
	got := drainTo(t, o.spool, 40)
	if first == 1 || got[0] != fmt.Sprintf("a:gap:0-%d", first-2) || got[1] != fmt.Sprintf("a:progress:%d", first-1) || len(got) != 42-int(first) {
		t.Errorf("from %d: %v", first, got)
	}
}

// Of a replay is missing what retention took of its range, and nothing behind it.
func TestAReplayIsShorterThanWhatRetentionTook(t *testing.T) {
	j := tight(t, t.TempDir(), 3000)
	for batch := range int64(40) {
		put(t, j, progressOf("a", batch))
	}
	if err := j.Retain(41); err != nil {
		t.Fatal(err)
	}
	first, _ := j.Bounds()
	for _, c := range []struct{ from, to, lost uint64 }{{3, 6, 5}, {3, first + 1, first - 1}} {
		source, closeSource, err := (&replays{journal: j}).Open(c.from, c.to)
		if err != nil {
			t.Fatal(err)
		}
		var lost *sinks.LostError
		if _, err := source.Next(t.Context(), 10, 1<<20); !errors.As(err, &lost) || lost.From != c.from || lost.To != c.lost {
			t.Errorf("%d to %d: %v", c.from, c.to, err)
		}
		if err := closeSource(); err != nil {
			t.Error(err)
		}
	}
}
