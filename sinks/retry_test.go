package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/listener"
)

func TestWorkerRetriesForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, tried := time.Now(), atomic.Int64{}
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			tried.Add(1)
			if time.Since(began) < time.Hour {
				return 0, errors.New("connection refused")
			}
			return len(events), nil
		}}
		w, stop := s.start(t)
		s.fed <- events(1, 3)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		attempts := int(tried.Load())
		if state := w.State(); state.Err == nil || state.Since != began || state.Failures != attempts || state.Next != 0 {
			t.Errorf("state after half an hour of %d attempts: %+v", attempts, state)
		}
		time.Sleep(32 * time.Minute)
		synctest.Wait()
		if state := w.State(); state.Err != nil || state.Failures != 0 || !state.Since.IsZero() || state.Delivered != 3 || state.Next != 4 {
			t.Errorf("state after the recovery: %+v", state)
		}
		attempts = int(tried.Load())
		if attempts < 50 || attempts > 130 {
			t.Errorf("%d attempts in an hour, want about one a minute", attempts)
		}
		if err := stop(); err != nil || s.lastSaved() != 4 {
			t.Errorf("stopped with %v and cursor %d, want nil and 4", err, s.lastSaved())
		}
		failed, recovered := strings.Count(s.log.String(), "sink fails, will try again\" sink=events step=deliver"), strings.Count(s.log.String(), "sink works again")
		if failed < 30 || failed > 62 || recovered != 1 {
			t.Errorf("%d failures and %d recoveries logged in an hour of %d attempts", failed, recovered, attempts)
		}
	})
}

func TestWorkerLogsAFailureThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		texts := []string{"refused", "refused", "refused", "no topic", "no topic", "refused"}
		s := &script{}
		s.deliver = func(_ context.Context, events []listener.Event) (int, error) {
			if len(texts) == 0 {
				return len(events), nil
			}
			text := texts[0]
			texts = texts[1:]
			return 0, errors.New(text)
		}
		_, stop := s.start(t)
		s.fed <- events(1, 1)
		time.Sleep(time.Hour)
		_ = stop()
		var logged []string
		for line := range strings.Lines(s.log.String()) {
			for _, word := range []string{"refused", "no topic", "works again"} {
				if strings.Contains(line, word) {
					logged = append(logged, word)
				}
			}
		}
		if got, want := fmt.Sprint(logged), "[refused no topic refused works again]"; got != want {
			t.Errorf("logged %s, want %s\n%s", got, want, s.log.String())
		}
	})
}

func TestWorkerStopsInBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{deliver: func(context.Context, []listener.Event) (int, error) { return 0, errors.New("down") }}
		w, stop := s.start(t)
		s.fed <- events(1, 1)
		time.Sleep(10 * time.Minute)
		at := time.Now()
		if err := stop(); err != nil || time.Since(at) > 0 {
			t.Errorf("stopped with %v after %s", err, time.Since(at))
		}
		if w.State().Next != 0 || len(s.saves()) != 0 {
			t.Errorf("cursor moved without an acknowledgement: %+v, %v", w.State(), s.saves())
		}
	})
}

// The waits grow over failures with a success between them, and begin anew only
// after deliveries have gone well for a while.
func TestWorkerBackOffNeedsMoreThanOneSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		var failedAt time.Time
		attempts := 0
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			if attempts++; attempts%2 == 1 {
				failedAt = time.Now()
				return 0, errors.New("flaky")
			}
			waits = append(waits, time.Since(failedAt))
			return len(events), nil
		}}
		_, stop := s.start(t)
		for n := uint64(1); n <= 10; n++ {
			s.fed <- events(n, n)
		}
		time.Sleep(time.Hour)
		s.fed <- events(11, 11)
		time.Sleep(time.Hour)
		_ = stop()
		if flaky := waits[9]; flaky < 30*time.Second {
			t.Errorf("tenth wait of a flaky destination is %s, want about a minute", flaky)
		}
		if fresh := waits[10]; fresh > time.Second {
			t.Errorf("first wait after a good hour is %s, want about 500ms", fresh)
		}
	})
}
