package journal

import (
	"errors"
	"fmt"
)

var (
	// ErrNone says that a directory holds no journal.
	ErrNone = errors.New("no journal")
	// ErrLocked says that another Journal, of this process or another, has the
	// directory open.
	ErrLocked = errors.New("journal is in use")
	// ErrGone says that the directory was removed or exchanged under the open journal:
	// what it writes is lost with the process.
	ErrGone = errors.New("journal directory is not the one that was opened any more")
	// ErrClosed says that the journal, or the reader, has been closed.
	ErrClosed = errors.New("journal is closed")
	// ErrTooLarge says that a body is larger than MaxBody.
	ErrTooLarge = errors.New("body is too large for the journal")
	// ErrBeyondEnd says that a position lies behind the log's end, where nothing
	// has been acknowledged yet.
	ErrBeyondEnd = errors.New("position is beyond the end of the journal")
	// ErrMismatch says that the state and the segments of a directory do not
	// belong together: one of them was lost, restored or exchanged alone.
	ErrMismatch = errors.New("state and segments of the journal do not belong together")
)

// DamageError says that bytes which were acknowledged once cannot be trusted any
// more. Nothing is dropped or repaired on account of it.
type DamageError struct {
	File   string // path of the file
	Offset int64  // where in the file, -1 where that is not known
	Reason string
}

// Error names the file and the offset.
func (e *DamageError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("journal is damaged: %s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("journal is damaged: %s at offset %d: %s", e.File, e.Offset, e.Reason)
}

// VersionError says that a file was written in a format that this program does
// not know.
type VersionError struct {
	File string
	// Found is the version in the file, Known the one that this program writes.
	Found, Known uint32
}

// Error says which program is needed.
func (e *VersionError) Error() string {
	return fmt.Sprintf("journal file %s has format version %d, this program knows version %d: use the program that wrote it",
		e.File, e.Found, e.Known)
}

// RetiredError says that retention deleted records before they were read.
type RetiredError struct {
	// From and To are the first and the last sequence that are gone, both
	// inclusive.
	From, To uint64
}

// Error names the records.
func (e *RetiredError) Error() string {
	return fmt.Sprintf("records %d to %d were deleted by retention before they were read", e.From, e.To)
}
