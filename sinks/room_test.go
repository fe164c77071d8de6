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

// More events may be too old at once than there is room for among the dead letters: as
// many go as can, the sink stops, and goes on when there is room.
func TestDeadLettersFillTheRoomThereIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := &script{fed: make(chan any, 1)}, &box{max: 3}
		all := lanes(2, 5)
		s.fed <- all
		time.Sleep(2 * time.Hour)
		w, stop := s.run(t, b, func(o *sinks.Options) { o.MaxAge = time.Hour })
		time.Sleep(time.Hour)
		synctest.Wait()
		if state := w.State(); !errors.Is(state.Err, sinks.ErrLettersFull) || state.Next != 4 || state.Buried != 3 || fmt.Sprint(b.sequences(t)) != "[1 2 3]" {
			t.Fatalf("state %+v, letters %v", state, b.sequences(t))
		}
		if err := b.Drop(2); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if state := w.State(); state.Next != 5 || fmt.Sprint(b.sequences(t)) != "[1 3 4]" {
			t.Errorf("state %+v, letters %v", state, b.sequences(t))
		}

		// A stop while it waits for room loses nothing.
		if err := stop(); err != nil || s.lastSaved() != 5 {
			t.Errorf("stopped with %v, cursor %d", err, s.lastSaved())
		}
		again := &script{fed: make(chan any, 1)}
		again.fed <- all[4:]
		if err := errors.Join(b.Drop(1), b.Drop(3)); err != nil {
			t.Fatal(err)
		}
		w, stop = again.run(t, b, func(o *sinks.Options) { o.MaxAge = time.Hour })
		synctest.Wait()
		if state := w.State(); state.Err != nil || state.Next != 6 || fmt.Sprint(b.sequences(t)) != "[4 5]" {
			t.Errorf("state %+v, letters %v", state, b.sequences(t))
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A replay that is stopped on its way goes on where it was.
func TestAReplayGoesOnAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{journal: lanes(1, 30), replays: []sinks.Replay{{ID: "r1", From: 1, To: 31}}}
		slow := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			time.Sleep(2 * time.Second)
			return len(events), nil
		}}
		_, stop := slow.run(t, b, nil)
		time.Sleep(9 * time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		first := len(slow.delivered())
		if first == 0 || first == 30 || len(b.replays) != 1 || b.replays[0].Next != uint64(first+1) {
			t.Fatalf("%d delivered, replays %+v", first, b.replays)
		}
		rest := &script{}
		_, stop = rest.run(t, b, nil)
		synctest.Wait()
		if err := stop(); err != nil || len(rest.delivered()) != 30-first || rest.delivered()[0] != uint64(first+1) || len(b.replays) != 0 {
			t.Errorf("stopped with %v: %v delivered after %d, replays %+v", err, rest.delivered(), first, b.replays)
		}
	})
}

// A dead letter of a replay is tried again as a part of it: a destination that knows the
// event from before must not take it for a repeat of that.
func TestALetterRemembersItsReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{journal: lanes(1, 2), replays: []sinks.Replay{{ID: "r1", From: 1, To: 3}}}
		var seen []string
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			for i, e := range events {
				seen = append(seen, fmt.Sprintf("%d %s", e.Sequence, e.Replay))
				if e.Sequence == 2 && len(seen) < 4 {
					return i, sinks.Permanent(errors.New("400"))
				}
			}
			return len(events), nil
		}}
		w, stop := s.run(t, b, nil)
		synctest.Wait()
		letters := b.list(t)
		if len(letters) != 1 || letters[0].Event.Replay != "r1" {
			t.Fatalf("letters %+v", letters)
		}
		letters[0].Retry = true
		if err := b.Add(letters[0]); err != nil {
			t.Fatal(err)
		}
		seen = append(seen, "retry")
		w.Wake()
		synctest.Wait()
		if err := stop(); err != nil || len(b.list(t)) != 0 || seen[len(seen)-1] != "2 r1" {
			t.Errorf("stopped with %v, letters %+v, seen %q", err, b.list(t), seen)
		}
	})
}
