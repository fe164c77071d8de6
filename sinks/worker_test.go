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

func TestWorkerGoesOnBehindWhatIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tried []int
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			tried = append(tried, len(events))
			if len(events) > 2 {
				return 2, errors.New("only two at a time")
			}
			return len(events), nil
		}}
		w, stop := s.start(t)
		s.fed <- events(1, 5)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(tried) != "[5 3 1]" || fmt.Sprint(s.delivered()) != "[1 2 3 4 5]" || w.State().Delivered != 5 || s.lastSaved() != 6 {
			t.Errorf("tried %v, delivered %v, cursor %d", tried, s.delivered(), s.lastSaved())
		}
	})
}

func TestWorkerHoldsSinksToTheirContract(t *testing.T) {
	for _, wrong := range []struct {
		acked int // of three
		err   error
	}{{-1, nil}, {2, nil}, {4, nil}, {3, sinks.Permanent(errors.New("refused"))}, {-1, sinks.Permanent(errors.New("refused"))}} {
		synctest.Test(t, func(t *testing.T) {
			attempts := 0
			s := &script{}
			s.deliver = func(context.Context, []listener.Event) (int, error) {
				if attempts++; attempts == 1 {
					return wrong.acked, wrong.err
				}
				return 3, nil
			}
			w, stop := s.start(t)
			s.fed <- events(1, 3)
			synctest.Wait()
			if state := w.State(); state.Err == nil || state.Delivered != 0 {
				t.Errorf("%d of 3 with error %v was taken: %+v", wrong.acked, wrong.err, state)
			}
			time.Sleep(time.Minute)
			if err := stop(); err != nil || w.State().Delivered != 3 {
				t.Errorf("stopped with %v after %d events", err, w.State().Delivered)
			}
		})
	}
}

func TestWorkerStopsInDeliverWithoutAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{deliver: func(ctx context.Context, _ []listener.Event) (int, error) {
			<-ctx.Done()
			return 2, ctx.Err()
		}}
		w, stop := s.start(t)
		s.fed <- events(1, 5)
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Errorf("stopped with %v", err)
		}
		if state := w.State(); state.Err != nil || state.Next != 3 || s.lastSaved() != 3 {
			t.Errorf("state %+v, cursor %d; want no failure and 3", state, s.lastSaved())
		}
		if s.log.String() != "" {
			t.Errorf("logged %s", s.log.String())
		}
	})
}

func TestWorkerNamesWhatRetentionTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{acked: 9} // the cursor may pass what is lost
		w, stop := s.start(t)
		s.fed <- fmt.Errorf("read journal: %w", &sinks.LostError{From: 1, To: 9})
		s.fed <- events(10, 11)
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if w.State().Next != 12 || !strings.Contains(s.log.String(), "level=ERROR msg=\"events lost to retention\" sink=events from=1 to=9") {
			t.Errorf("state %+v, log %s", w.State(), s.log.String())
		}
	})
}

func TestWorkerEndsWhenTheJournalCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		_, stop := s.start(t)
		s.fed <- events(1, 2)
		damage := errors.New("damaged")
		s.fed <- damage
		time.Sleep(time.Second)
		if err := stop(); !errors.Is(err, damage) || !strings.Contains(err.Error(), "sink events") {
			t.Errorf("ended with %v", err)
		}
		if s.lastSaved() != 3 {
			t.Errorf("cursor %d, want 3", s.lastSaved())
		}
	})
}
