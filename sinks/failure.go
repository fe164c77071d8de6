package sinks

import (
	"errors"
	"time"
)

// PermanentError is the refusal of one event for what it is: sending it again
// would be answered in the same way. A Deliver that returns it says that of the
// first event that it has not acknowledged, and of no other.
type PermanentError struct {
	Err error
}

// Permanent marks an error as the refusal of one event.
func Permanent(err error) error { return &PermanentError{err} }

// IsPermanent tells whether an error is the refusal of one event.
func IsPermanent(err error) bool { return errors.As(err, new(*PermanentError)) }

// Error is the text of the error inside.
func (e *PermanentError) Error() string { return e.Err.Error() }

// Unwrap returns the error inside.
func (e *PermanentError) Unwrap() error { return e.Err }

// RetryAfterError is a failure of a destination that says when to come again. A
// Worker waits at least so long.
type RetryAfterError struct {
	After time.Duration
	Err   error
}

// Error is the text of the error inside: that stays the same while the time
// that is asked for changes.
func (e *RetryAfterError) Error() string { return e.Err.Error() }

// Unwrap returns the error inside.
func (e *RetryAfterError) Unwrap() error { return e.Err }

// askedFor is how long a destination wants to be left alone, 0 where it does not say.
func askedFor(err error) time.Duration {
	var later *RetryAfterError
	if errors.As(err, &later) {
		return later.After
	}
	return 0
}
