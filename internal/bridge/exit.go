package bridge

import "errors"

// The exit codes of the program.
const (
	// exitBroken: the journal or a port cannot be used, or no source can go on.
	exitBroken = 1
	// exitUsage: wrong configuration, a refused token, ids that are not UUIDs.
	exitUsage = 2
)

// exitError is an error that tells the program how to exit.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// ExitCode is the code that the program ends with.
func (e *exitError) ExitCode() int { return e.code }

func broken(err error) error { return &exitError{exitBroken, err} }
func usage(err error) error  { return &exitError{exitUsage, err} }

// worse returns of two ends the one with the higher code, which is the one that
// the user has to mend first.
func worse(a, b error) error {
	var x, y *exitError
	if errors.As(a, &x) && errors.As(b, &y) && y.code > x.code || a == nil {
		return b
	}
	return a
}

func isUsage(err error) bool {
	var e *exitError
	return errors.As(err, &e) && e.code == exitUsage
}
