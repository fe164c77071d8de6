package sinks

import (
	"context"
	"errors"
	"time"
)

// StoppedError is the wish of a destination to get no more events at all. A Worker
// stops for it: it sends nothing, loses nothing and sets nothing aside until it is
// woken or started anew.
type StoppedError struct {
	Err error
}

// Stopped marks an error as the wish to get no more events.
func Stopped(err error) error { return &StoppedError{err} }

// IsStopped tells whether an error is the wish to get no more events.
func IsStopped(err error) bool { return errors.As(err, new(*StoppedError)) }

// Error is the text of the error inside.
func (e *StoppedError) Error() string { return e.Err.Error() }

// Unwrap returns the error inside.
func (e *StoppedError) Unwrap() error { return e.Err }

// stop ends all attempts until the worker is woken. waiting is the first event that
// the destination has not got.
func (w *Worker) stop(err error, waiting uint64) {
	w.stopped = true
	w.log.Error("sink has stopped", "err", err, "waiting_from", waiting)
	w.note(func(s *State) {
		s.Stopped, s.Err = true, err
		s.Failures++
		if s.Since.IsZero() {
			s.Since = time.Now()
		}
	})
}

// resume lets a worker that has stopped try again.
func (w *Worker) resume() {
	if !w.stopped {
		return
	}
	w.stopped = false
	w.log.Info("sink that had stopped is tried again")
	w.note(func(s *State) { s.Stopped, s.Err, s.Since, s.Failures = false, nil, time.Time{}, 0 })
}

// rest waits until the worker is woken.
func (w *Worker) rest(ctx context.Context) {
	woken, cancel := w.waker.wait(ctx, time.Time{})
	defer cancel()
	<-woken.Done()
}
