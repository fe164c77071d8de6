package sinks_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/listener"
)

func TestWorkerSavesTheCursorUnderLoadAndAtOnceWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			time.Sleep(time.Millisecond)
			return len(events), nil
		}}
		_, stop := s.start(t)
		for n := uint64(1); n <= 1000; n++ {
			s.fed <- events(n, n)
		}
		time.Sleep(1100 * time.Millisecond)
		if saves := len(s.saves()); saves < 10 || saves > 12 || s.lastSaved() != 1001 {
			t.Errorf("%d saves in a second of load, the last of %d", saves, s.lastSaved())
		}
		time.Sleep(time.Minute)
		at := time.Now()
		s.fed <- events(1001, 1001)
		time.Sleep(time.Second)
		if last := s.saves()[len(s.saves())-1]; last.next != 1002 || last.at.Sub(at) > time.Millisecond {
			t.Errorf("idle: saved %d after %s", last.next, last.at.Sub(at))
		}
		_ = stop()
	})
}

func TestWorkerOutlivesACursorThatCannotBeSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := true
		s := &script{save: func(uint64) error {
			if full {
				return errors.New("no space left on device")
			}
			return nil
		}}
		w, stop := s.start(t)
		s.fed <- events(1, 3)
		time.Sleep(30 * time.Second)
		if w.State().Delivered != 3 || strings.Count(s.log.String(), `step="save cursor"`) != 1 {
			t.Errorf("delivered %d, log:\n%s", w.State().Delivered, s.log.String())
		}
		s.mu.Lock()
		full = false
		s.mu.Unlock()
		time.Sleep(2 * time.Second)
		if s.lastSaved() != 4 {
			t.Errorf("saved %d, want 4", s.lastSaved())
		}
		_ = stop()
	})
}
