package sinks_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// Queries that hang, many of them and for longer than the pause between two tries, do
// not keep others from going through, and are given up in the end.
func TestQueriesThatHangLeaveTurnsToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := &box{}, &script{}
		s.deliver = func(_ context.Context, events []listener.Event) (int, error) {
			for i := range events {
				if events[i].QueryID != "q0" {
					time.Sleep(10 * time.Second)
					return i, errPoison
				}
			}
			return len(events), nil
		}
		s.fed = make(chan any, 10)
		s.fed <- lanes(6, 30) // five of six queries hang
		_, stop := s.run(t, b, func(o *sinks.Options) { o.Retry = sinks.Retry{Initial: time.Second, Max: 5 * time.Second} })
		time.Sleep(30 * time.Minute)
		began := time.Now()
		for n := range uint64(20) {
			s.fed <- []listener.Event{{Sequence: 100 + n, QueryID: "q0", Kind: listener.KindProgress, Recorded: time.Now()}}
			for !slices.Contains(s.delivered(), 100+n) {
				time.Sleep(time.Second)
			}
		}
		if took := time.Since(began); took > 20*time.Minute {
			t.Errorf("20 events of the query that works took %s", took)
		}
		for n := range uint64(600) {
			s.fed <- []listener.Event{{Sequence: 200 + n, QueryID: "q0", Kind: listener.KindProgress, Recorded: time.Now()}}
			time.Sleep(30 * time.Second)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if n := len(b.sequences(t)); n != 25 {
			t.Errorf("%d dead letters, want all events of the queries that hang: the first after an hour, the others soon after it", n)
		}
	})
}

// The time of an outage is no reason to give an event up: one that fails once more when
// the destination is back has not failed alone.
func TestAnOutageCountsAgainstNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s, began := &box{}, &script{}, time.Now()
		unlucky := 0
		s.deliver = poisoned(func(e *listener.Event) error {
			switch since := time.Since(began); {
			case e.QueryID == "q1" && since < time.Minute: // it is set aside before the outage
				return errPoison
			case since > time.Minute && since < 3*time.Hour:
				return errPoison
			case e.QueryID == "q1" && since >= 3*time.Hour && unlucky < 3:
				unlucky++
				return errPoison
			}
			return nil
		})
		s.fed = make(chan any, 1000)
		s.fed <- lanes(3, 9)
		_, stop := s.run(t, b, nil)
		for n := range uint64(240) { // events of others come all the while
			time.Sleep(time.Minute)
			s.fed <- []listener.Event{{Sequence: 100 + n, QueryID: "q0", Kind: listener.KindProgress, Recorded: time.Now()}}
		}
		time.Sleep(10 * time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if dead := b.list(t); len(dead) != 0 || unlucky != 3 || len(s.delivered()) != 249 {
			t.Errorf("%d dead letters (%+v), %d delivered, failed %d times after the outage", len(dead), dead, len(s.delivered()), unlucky)
		}
	})
}

// What passes the thinner follows from the journal alone, also where many events lie
// ready that are long over.
func TestABacklogIsThinnedLikeAReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := &script{}, &box{}
		s.fed = make(chan any, 1000)
		old := time.Now().Add(-24 * time.Hour).Truncate(time.Minute)
		for n := range uint64(300) { // one each second, read one by one
			s.fed <- []listener.Event{{Sequence: n + 1, QueryID: "q", Kind: listener.KindProgress, Recorded: old.Add(time.Duration(n) * time.Second)}}
		}
		_, stop := s.run(t, b, func(o *sinks.Options) { o.ProgressEvery = 30 * time.Second })
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		want := "[30 60 90 120 150 180 210 240 270 300]"
		if got := fmt.Sprint(s.delivered()); got != want {
			t.Errorf("delivered %s, want the newest of each period: %s", got, want)
		}
	})
}

// A receiver that asks for an hour of rest does not keep the bridge from what it is told to do.
func TestAWorkerThatIsAskedWakesFromALongPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := &script{}, &box{}
		tries := 0
		s.deliver = func(context.Context, []listener.Event) (int, error) {
			tries++
			return 0, &sinks.RetryAfterError{After: time.Hour, Err: errPoison}
		}
		s.fed = make(chan any, 1)
		s.fed <- lanes(1, 1)
		w, stop := s.run(t, b, nil)
		time.Sleep(time.Minute)
		b.mu.Lock()
		b.replays = append(b.replays, sinks.Replay{ID: "r", From: 1, To: 1})
		b.mu.Unlock()
		w.Wake()
		time.Sleep(time.Minute)
		b.mu.Lock()
		left := len(b.replays)
		b.mu.Unlock()
		if err := stop(); err != nil || left != 0 {
			t.Errorf("the replay waits for the end of the pause: %v", err)
		}
	})
}
