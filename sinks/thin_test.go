package sinks

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sparkbridge/listener"
)

// thinned is what comes out of a thinner for events in one go: sequences that pass,
// and those that are dropped. The clock runs with the events, and then on.
func thinned(period time.Duration, events []listener.Event) (passed, dropped []listener.Event) {
	t := newThinner(period)
	pass := func(e listener.Event) { passed = append(passed, e) }
	drop := func(e listener.Event) { dropped = append(dropped, e) }
	for _, e := range events {
		t.elapsed(e.Recorded, pass)
		t.offer(e, pass, drop)
	}
	t.elapsed(events[len(events)-1].Recorded.Add(period+settle), pass)
	if t.events != 0 || t.bytes != 0 || len(t.held) != 0 || !t.next().IsZero() {
		panic(fmt.Sprintf("%d events, %d bytes left in the thinner", t.events, t.bytes))
	}
	return passed, dropped
}

// random is a journal of a few queries: many progress events, now and then another.
func random(r *rand.Rand, n int) []listener.Event {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	others := []listener.Kind{listener.KindIdle, listener.KindIdle, listener.KindTerminated, listener.KindStarted, listener.KindGap, listener.KindUnknown}
	events := make([]listener.Event, n)
	for i := range events {
		at = at.Add(time.Duration(r.IntN(4000)) * time.Millisecond)
		e := listener.Event{
			Sequence: uint64(i + 1), Recorded: at, Kind: listener.KindProgress,
			QueryID: fmt.Sprint("q", r.IntN(3)), Payload: make([]byte, r.IntN(9)),
		}
		if r.IntN(4) == 0 {
			e.Kind = others[r.IntN(len(others))]
		}
		if r.IntN(20) == 0 {
			e.Kind, e.QueryID = listener.KindBus, ""
		}
		events[i] = e
	}
	return events
}

func TestThinnerProperties(t *testing.T) {
	const period = 10 * time.Second
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		events := random(r, 1+r.IntN(200))
		passed, dropped := thinned(period, events)
		if len(passed)+len(dropped) != len(events) {
			t.Fatalf("seed %d: %d of %d events came out", seed, len(passed)+len(dropped), len(events))
		}
		for _, e := range dropped {
			if e.Kind != listener.KindProgress {
				t.Fatalf("seed %d: a %s event was thinned", seed, e.Kind)
			}
		}
		for _, query := range []string{"q0", "q1", "q2", ""} {
			checkThinned(t, seed, period, of(query, events), of(query, passed))
		}
	}
}

// checkThinned holds what passed of one query against what a reader expects: each
// event that is no progress; the last progress before each event that ends a period,
// and no other.
func checkThinned(t *testing.T, seed uint64, period time.Duration, all, passed []listener.Event) {
	t.Helper()
	var want []listener.Event
	for i, e := range all {
		if e.Kind != listener.KindProgress || e.QueryID == "" {
			want = append(want, e)
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(all[i+1:]), func(e listener.Event) bool { return e.Kind == listener.KindIdle })
		newest := len(rest) == 0 || rest[0].Kind != listener.KindProgress ||
			!rest[0].Recorded.Truncate(period).Equal(e.Recorded.Truncate(period))
		if newest {
			want = append(want, e)
		}
	}
	if got, want := sequences(passed), sequences(want); !slices.Equal(got, want) {
		t.Fatalf("seed %d, query %q passed %v, want %v", seed, all[0].QueryID, got, want)
	}
}

// What passes does not depend on where reading begins, as long as that is not behind
// what is held: a restart brings nothing that was thinned before.
func TestThinnerIsTheSameAfterARestart(t *testing.T) {
	const period = 10 * time.Second
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 2))
		events := random(r, 2+r.IntN(100))
		whole, _ := thinned(period, events)
		from := r.IntN(len(events))
		later, _ := thinned(period, events[from:])
		for _, e := range later {
			if !slices.ContainsFunc(whole, func(o listener.Event) bool { return o.Sequence == e.Sequence }) {
				t.Fatalf("seed %d: event %d passes from %d on, but not from the beginning", seed, e.Sequence, from+1)
			}
		}
	}
}

func TestThinnerHoldsABoundedNumber(t *testing.T) {
	th := newThinner(time.Hour)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var passed []uint64
	for n := range uint64(maxHeld + 10) {
		th.offer(listener.Event{Sequence: n + 1, Recorded: at, Kind: listener.KindProgress, QueryID: fmt.Sprint(n)},
			func(e listener.Event) { passed = append(passed, e.Sequence) }, func(listener.Event) { t.Error("dropped") })
	}
	if th.events != maxHeld || !slices.Equal(passed, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
		t.Errorf("%d held, let go %v", th.events, passed)
	}
}

func of(query string, events []listener.Event) (own []listener.Event) {
	for _, e := range events {
		if e.QueryID == query {
			own = append(own, e)
		}
	}
	return own
}

func sequences(events []listener.Event) (list []uint64) {
	for _, e := range events {
		list = append(list, e.Sequence)
	}
	return list
}
