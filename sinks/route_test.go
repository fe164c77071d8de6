package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

func TestWorkerDeliversWhatIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		s.fed = make(chan any, 1)
		all := lanes(1, 6)
		all[1].Kind, all[4].Kind = listener.KindTerminated, listener.KindTerminated
		s.fed <- all
		_, stop := s.run(t, &box{}, func(o *sinks.Options) { o.Match.Kinds = []listener.Kind{listener.KindTerminated} })
		synctest.Wait()
		if err := stop(); err != nil || fmt.Sprint(s.delivered()) != "[2 5]" || s.lastSaved() != 7 {
			t.Errorf("stopped with %v: %v delivered, cursor %d; what is not wanted counts as delivered", err, s.delivered(), s.lastSaved())
		}
	})
}

// Held back, the newest progress goes when its period is over, without another event;
// the cursor waits for it, and an end does not.
func TestWorkerHoldsBackTheNewestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Now().Truncate(30 * time.Second).Add(30 * time.Second)))
		s := &script{}
		s.fed = make(chan any, 10)
		w, stop := s.run(t, &box{}, func(o *sinks.Options) { o.ProgressEvery = 30 * time.Second })
		all := lanes(2, 6) // q0: 1 3 5, q1: 2 4 6
		all[5].Kind = listener.KindTerminated
		s.fed <- all
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if got := fmt.Sprint(s.delivered()); got != "[4 6]" {
			t.Errorf("within the period %s went, want the last progress and the end of q1", got)
		}
		if state := w.State(); s.lastSaved() != 5 || state.Next != 5 || state.Held != 1 || state.Read != 7 || state.Open != 1 {
			t.Errorf("cursor %d, state %+v; want 5, the held event", s.lastSaved(), state)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := fmt.Sprint(s.delivered()); got != "[4 6 5]" || w.State().Held != 0 {
			t.Errorf("after the period %s", got)
		}
		if err := stop(); err != nil || s.lastSaved() != 7 {
			t.Errorf("stopped with %v, cursor %d", err, s.lastSaved())
		}
	})
}

func TestAReplayGoesFirstAndIsFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := lanes(2, 10)
		b := &box{journal: all[:8], replays: []sinks.Replay{{ID: "r1", From: 2, To: 6}, {ID: "r2", From: 7, To: 8}}}
		var marks []string
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			for _, e := range events {
				marks = append(marks, fmt.Sprint(e.ID, e.Replay))
			}
			return len(events), nil
		}}
		s.fed = make(chan any, 1)
		s.fed <- all[8:]
		time.Sleep(time.Hour) // a replay knows no age
		w, stop := s.run(t, b, func(o *sinks.Options) { o.MaxAge = time.Minute; o.Match.Queries = []string{"q*"} })
		synctest.Wait()
		if got := fmt.Sprint(marks[:5]); got != "[2r1 3r1 4r1 5r1 7r2]" || len(b.replays) != 0 {
			t.Errorf("delivered %s, replays left %v", got, b.replays)
		}
		if state := w.State(); state.Replay != "" || state.Next < 9 {
			t.Errorf("state %+v", state)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		for _, saved := range s.saves() {
			if saved.next < 9 {
				t.Errorf("a replay moved the cursor to %d", saved.next)
			}
		}
	})
}

func TestAReplayGoesOnAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := lanes(1, 9)
		b := &box{journal: all, replays: []sinks.Replay{{ID: "r1", From: 1, To: 10}}}
		down := true
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			if down && events[0].Sequence >= 4 {
				return 0, errors.New("down")
			}
			return len(events), nil
		}}
		_, stop := s.run(t, b, nil)
		time.Sleep(time.Minute)
		if err := stop(); err != nil || len(b.replays) != 1 || b.replays[0].Next != 4 {
			t.Fatalf("stopped with %v, replays %+v", err, b.replays)
		}
		down = false
		_, stop = s.run(t, b, nil)
		synctest.Wait()
		if err := stop(); err != nil || len(b.replays) != 0 || fmt.Sprint(s.delivered()) != "[1 2 3 4 5 6 7 8 9]" {
			t.Errorf("stopped with %v, replays %+v, delivered %v", err, b.replays, s.delivered())
		}
	})
}

// Somebody asks while the worker waits for events.
func TestWakeInterruptsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{journal: lanes(1, 2)}
		s := &script{}
		w, stop := s.run(t, b, nil)
		time.Sleep(time.Hour)
		b.mu.Lock()
		b.replays = []sinks.Replay{{ID: "r", From: 1, To: 3}}
		b.mu.Unlock()
		w.Wake()
		synctest.Wait()
		if err := stop(); err != nil || fmt.Sprint(s.delivered()) != "[1 2]" {
			t.Errorf("stopped with %v, delivered %v", err, s.delivered())
		}
	})
}

func TestAReplayCanBeCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{journal: lanes(1, 9), replays: []sinks.Replay{{ID: "r1", From: 1, To: 10}}}
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			if events[0].Sequence >= 4 && events[0].Replay != "" {
				return 0, errors.New("down")
			}
			return len(events), nil
		}}
		w, stop := s.run(t, b, nil)
		time.Sleep(time.Minute)
		_ = b.Finish("r1")
		w.Wake()
		s.fed <- events(20, 21)
		time.Sleep(2 * time.Minute)
		if err := stop(); err != nil || fmt.Sprint(s.delivered()) != "[1 2 3 20 21]" || s.lastSaved() != 22 {
			t.Errorf("stopped with %v, delivered %v, cursor %d", err, s.delivered(), s.lastSaved())
		}
	})
}

func TestCountIsWhatAReplayDelivers(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all := lanes(2, 20)
	for i := range all {
		all[i].Recorded, all[i].Name = at.Add(time.Duration(i)*time.Second), all[i].QueryID
	}
	match, every := sinks.Match{Queries: []string{"q1"}}, 10*time.Second
	source, _, _ := (&box{journal: all}).Open(3, 19)
	if n, err := sinks.Count(t.Context(), source, match, every); n != 2 || err != nil {
		t.Errorf("counted %d, %v; want the newest of q1 in each of two periods", n, err)
	}
}
