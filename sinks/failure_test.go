package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// A destination that names a time is left alone until then, and the log has its
// failure once although the time changes.
func TestWorkerWaitsAsLongAsItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, tried := time.Now(), atomic.Int64{}
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			if tried.Add(1); time.Since(began) < time.Hour {
				return 0, fmt.Errorf("deliver: %w", &sinks.RetryAfterError{After: time.Hour, Err: errors.New("busy")})
			}
			return len(events), nil
		}}
		w, stop := s.start(t)
		s.fed <- events(1, 3)
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if got := tried.Load(); got != 1 {
			t.Errorf("%d attempts within the time that was asked for", got)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if state := w.State(); state.Delivered != 3 || tried.Load() != 2 {
			t.Errorf("%+v after %d attempts", state, tried.Load())
		}
		_ = stop()
	})
}

// A short time does not make the waits shorter than they would be.
func TestWorkerBacksOffAllTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tried atomic.Int64
		s := &script{deliver: func(context.Context, []listener.Event) (int, error) {
			tried.Add(1)
			return 0, &sinks.RetryAfterError{After: time.Millisecond, Err: errors.New("busy")}
		}}
		_, stop := s.start(t)
		s.fed <- events(1, 1)
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := tried.Load(); got > 130 {
			t.Errorf("%d attempts in an hour", got)
		}
		_ = stop()
	})
}

func TestMarkedErrors(t *testing.T) {
	cause := errors.New("refused")
	err := fmt.Errorf("deliver: %w", sinks.Permanent(cause))
	if !sinks.IsPermanent(err) || !errors.Is(err, cause) || err.Error() != "deliver: refused" {
		t.Errorf("permanent: %v", err)
	}
	if sinks.IsPermanent(cause) || sinks.IsPermanent(nil) || sinks.IsPermanent(&sinks.RetryAfterError{Err: cause}) {
		t.Error("an error that is not marked is permanent")
	}
}
