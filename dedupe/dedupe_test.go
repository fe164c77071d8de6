package dedupe

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

func TestTheBeginningOfARunMayBeOpen(t *testing.T) {
	m := New()
	m.Progress("a", 9)
	m.Unbegun("a")
	if fresh, _ := m.Progress("a", 5); !fresh {
		t.Error("a batch before the first is no news")
	}
	if got := m.Open("a"); !slices.Equal(got, []Range{{0, 4}, {6, 8}}) {
		t.Errorf("open: %v", got)
	}
	m.Begin("a")
	if got := m.Open("a"); !slices.Equal(got, []Range{{6, 8}}) {
		t.Errorf("open: %v", got)
	}
	if m.Begin("b"); m.Known("b") {
		t.Error("a run came to be by a question")
	}
}

func TestProgressTellsNewsFromRepeatsAndFindsJumps(t *testing.T) {
	m := New()
	steps := []struct {
		batch   int64
		fresh   bool
		missing Range
	}{
		{12, true, Range{0, -1}}, // a restarted query: no gap before its first batch
		{13, true, Range{13, 12}},
		{13, false, Range{0, -1}},
		{12, false, Range{0, -1}},
		{17, true, Range{14, 16}},
		{15, true, Range{0, -1}}, // it was missing, and comes late
		{15, false, Range{0, -1}},
		{18, true, Range{18, 17}},
	}
	for _, s := range steps {
		fresh, missing := m.Progress("r", s.batch)
		if fresh != s.fresh || missing.Empty() != s.missing.Empty() || (!missing.Empty() && missing != s.missing) {
			t.Errorf("batch %d: fresh %v missing %v, want %v %v", s.batch, fresh, missing, s.fresh, s.missing)
		}
	}
	if got := m.Batch("r"); got != 18 {
		t.Errorf("highest batch %d, want 18", got)
	}
	if fresh, _ := m.Progress("other", 0); !fresh {
		t.Error("batch 0 of another run is no news")
	}
}

func TestMissingBatchesStayOpenUntilTheyComeOrAreGivenUp(t *testing.T) {
	m := New()
	m.Progress("r", 0)
	m.Progress("r", 10)
	want := func(ranges ...Range) {
		t.Helper()
		if got := m.Open("r"); !slices.Equal(got, ranges) {
			t.Errorf("open %v, want %v", got, ranges)
		}
	}
	want(Range{1, 9})
	m.Progress("r", 5)
	want(Range{1, 4}, Range{6, 9})
	if !m.Gap("r", Range{3, 7}) {
		t.Error("a gap of open batches is no news")
	}
	want(Range{1, 2}, Range{8, 9})
	if m.Gap("r", Range{3, 7}) {
		t.Error("a gap is news twice")
	}
	if fresh, _ := m.Progress("r", 4); fresh {
		t.Error("a batch that was given up is news")
	}
	if !m.Gap("r", Range{11, 12}) || m.Batch("r") != 12 { // told before the batch that revealed it
		t.Errorf("the mark is at %d after a gap to 12", m.Batch("r"))
	}
	if _, missing := m.Progress("r", 13); !missing.Empty() {
		t.Errorf("missing %v behind the gap", missing)
	}
	if m.Gap("r", Range{1, 9}); len(m.Open("r")) != 0 {
		t.Errorf("open %v", m.Open("r"))
	}
}

func TestAnInferredEndGivesWayToTheRealOne(t *testing.T) {
	m, now := New(), time.Unix(1, 0)
	m.Started("a")
	m.Started("b")
	if got := m.Running(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("running %v", got)
	}
	if !m.InferEnd("a", now) || m.InferEnd("a", now) {
		t.Error("an inferred end is not news once")
	}
	if m.Progress("a", 1); !slices.Equal(m.Running(), []string{"a", "b"}) || m.InferEnd("a", now) {
		t.Error("a run that goes on after its end was inferred is not running, or ends twice")
	}
	if !m.Terminated("a", now) || m.Terminated("a", now) || m.InferEnd("a", now) {
		t.Error("the real end is not news once")
	}
	if got := m.Running(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("running %v", got)
	}
}

func TestEachKindHasItsOwnMark(t *testing.T) {
	m, at := New(), time.UnixMilli(1_000)
	if m.Known("r") || m.HasStarted("r") || m.Batch("r") != -1 {
		t.Fatal("an unseen run is known")
	}
	for i, want := range []bool{true, false} {
		if got := m.Started("r"); got != want {
			t.Errorf("started %d: %v", i, got)
		}
		if got := m.Idle("r", at); got != want {
			t.Errorf("idle %d: %v", i, got)
		}
		if got := m.Terminated("r", at); got != want {
			t.Errorf("terminated %d: %v", i, got)
		}
		if got := m.Once("r:type9:x"); got != want {
			t.Errorf("once %d: %v", i, got)
		}
	}
	if m.Idle("r", at.Add(-time.Second)) {
		t.Error("an older idle is news")
	}
	if !m.Idle("r", at.Add(time.Millisecond)) {
		t.Error("a newer idle is a repeat")
	}
	if !m.Known("r") || !m.HasStarted("r") {
		t.Error("the run is not known")
	}
}

func TestSweepForgetsOnlyRunsThatEndedADayAgo(t *testing.T) {
	m, end := New(), time.Unix(1_000_000, 0)
	m.Started("running")
	m.Terminated("ended", end)
	if gone := m.Sweep(end.Add(keepEnded)); len(gone) != 0 {
		t.Errorf("swept %v too early", gone)
	}
	if gone := m.Sweep(end.Add(keepEnded + time.Second)); len(gone) != 1 || gone[0] != "ended" {
		t.Errorf("swept %v, want the ended run", gone)
	}
	if m.Known("ended") || !m.Known("running") {
		t.Error("the wrong run was forgotten")
	}
}

func TestOnceIsBounded(t *testing.T) {
	m := New()
	for i := range 2 * maxOnce {
		m.Once(strconv.Itoa(i))
	}
	if len(m.once) != maxOnce || len(m.order) != maxOnce {
		t.Errorf("%d ids kept, want %d", len(m.once), maxOnce)
	}
	if m.Once(strconv.Itoa(2*maxOnce - 1)) {
		t.Error("the newest id was forgotten")
	}
}

// A stored copy decides like the original, whatever came before.
func TestSnapshotDecidesLikeTheOriginal(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 0))
		m := New()
		feed(m, rng, 200)
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		copied := New()
		if err := json.Unmarshal(b, copied); err != nil {
			t.Fatal(err)
		}
		want := feed(m, rand.New(rand.NewPCG(seed, 1)), 200)
		got := feed(copied, rand.New(rand.NewPCG(seed, 1)), 200)
		if want != got {
			t.Fatalf("seed %d: the copy decides otherwise:\n%s\n%s", seed, want, got)
		}
	}
}

// feed takes n random events and returns the decisions.
func feed(m *Marks, rng *rand.Rand, n int) string {
	var decisions []byte
	for range n {
		id := strconv.Itoa(rng.IntN(5))
		var fresh bool
		switch rng.IntN(7) {
		case 0:
			fresh = m.Started(id)
		case 1:
			fresh, _ = m.Progress(id, rng.Int64N(100))
		case 2:
			fresh = m.Idle(id, time.UnixMilli(rng.Int64N(1000)))
		case 3:
			fresh = m.Terminated(id, time.UnixMilli(1))
		case 4:
			fresh = m.InferEnd(id, time.UnixMilli(1))
		case 5:
			from := rng.Int64N(100)
			fresh = m.Gap(id, Range{from, from + rng.Int64N(5)})
		default:
			fresh = m.Once(strconv.Itoa(rng.IntN(300)))
		}
		decisions = strconv.AppendBool(decisions, fresh)
	}
	return string(decisions)
}

func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"runs":{"a":{"batch":3,"idle":-1,"started":true}},"once":["x"]}`))
	f.Add([]byte(`{"runs":{"a":null}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := New()
		if err := json.Unmarshal(b, m); err != nil {
			return
		}
		m.Progress("a", 1)
		m.Sweep(time.Now())
		if _, err := json.Marshal(m); err != nil {
			t.Errorf("stored marks cannot be stored again: %v", err)
		}
	})
}
