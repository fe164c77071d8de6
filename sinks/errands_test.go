package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

var errNoSpace = errors.New("no space left on device")

// marked puts dead letters that are to be tried once more.
func (b *box) marked(t *testing.T, events ...listener.Event) {
	t.Helper()
	for _, e := range events {
		if err := b.Add(sinks.Letter{Event: e, Cause: sinks.CauseAlone, Reason: "old", Retry: true}); err != nil {
			t.Fatal(err)
		}
	}
}

// Many letters that fail again, each after its time-out, do not keep the sink
// from what comes.
func TestRetriesDoNotHoldUpEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := lanes(1, 140)
		b := &box{}
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			if events[0].Sequence <= 40 {
				time.Sleep(4 * time.Second)
				return 0, errors.New("still 500")
			}
			return len(events), nil
		}}
		b.marked(t, all[:40]...)
		_, stop := s.run(t, b, nil)
		time.Sleep(time.Second)
		s.fed <- all[40:]
		time.Sleep(time.Minute)
		if n := len(s.delivered()); n != 100 {
			t.Errorf("%d of 100 events went while letters were tried", n)
		}
		time.Sleep(10 * time.Minute)
		if err := stop(); err != nil {
			t.Error(err)
		}
		for _, l := range b.list(t) {
			if l.Retry || l.Reason != "still 500" {
				t.Fatalf("letter %d was not tried: %+v", l.Event.Sequence, l)
			}
		}
	})
}

func TestALetterThatIsDroppedWhileItIsTriedStaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{}
		s := &script{deliver: func(context.Context, []listener.Event) (int, error) {
			return 0, errors.Join(errors.New("still 500"), b.Drop(1))
		}}
		b.marked(t, lanes(1, 1)...)
		_, stop := s.run(t, b, nil)
		synctest.Wait()
		if err := stop(); err != nil || len(b.list(t)) != 0 {
			t.Errorf("stopped with %v, letters %+v", err, b.list(t))
		}
	})
}

// What cannot be stored for want of room is done by itself when there is some.
func TestErrandsAreDoneWhenTheDiskHasRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := &box{journal: lanes(1, 3), replays: []sinks.Replay{{ID: "r1", From: 2, To: 4}}}, &script{}
		b.marked(t, b.journal[0])
		b.fail(errNoSpace)
		_, stop := s.run(t, b, nil)
		time.Sleep(10 * time.Minute)
		if list := b.list(t); len(list) != 1 || !list[0].Retry {
			t.Fatalf("letters %+v", list)
		}
		b.fail(nil)
		time.Sleep(2 * time.Minute)
		if err := stop(); err != nil || len(b.list(t)) != 0 || len(b.replays) != 0 {
			t.Errorf("stopped with %v, letters %+v, replays %v", err, b.list(t), b.replays)
		}
	})
}

// A dead letter that cannot be stored keeps its event where it is, and shows.
func TestALetterThatCannotBeStoredHoldsTheCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{}
		s := &script{fed: make(chan any, 1), deliver: func(_ context.Context, events []listener.Event) (int, error) {
			if events[0].Sequence == 1 {
				return 0, sinks.Permanent(errors.New("400"))
			}
			return len(events), nil
		}}
		s.fed <- lanes(1, 2)
		b.fail(errNoSpace)
		w, stop := s.run(t, b, nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		if state := w.State(); !errors.Is(state.Err, errNoSpace) || time.Since(state.Since) < 59*time.Minute || state.Next != 0 || len(s.saves()) != 0 {
			t.Errorf("state %+v, cursors %v", state, s.saves())
		}
		if !strings.Contains(s.log.String(), errNoSpace.Error()) {
			t.Errorf("not said: %s", s.log.String())
		}
		b.fail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if state := w.State(); state.Err != nil || state.Next != 3 || state.Buried != 1 {
			t.Errorf("state %+v", state)
		}
		if err := stop(); err != nil || fmt.Sprint(s.delivered(), b.sequences(t)) != "[2] [1]" {
			t.Errorf("stopped with %v: delivered %v, letters %v", err, s.delivered(), b.sequences(t))
		}
	})
}
