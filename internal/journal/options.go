package journal

import (
	"log/slog"
	"time"
)

const defaultSegmentBytes = 64 << 20

// Options say how a journal works; the zero value is ready for use.
type Options struct {
	// SegmentBytes is the size at which a new segment begins, 64 MiB if zero.
	// Retention deletes by segments.
	SegmentBytes int64
	// MaxAge and MaxBytes are the limits that Retain keeps to; zero is none.
	MaxAge   time.Duration
	MaxBytes int64
	// Log receives what was found and done when opening; nil is no log.
	Log *slog.Logger
	// Now is the clock, time.Now if nil.
	Now func() time.Time
	// Written, if it is not nil, is told how long each write to the log took, sync
	// included, and how it ended. It must return soon.
	Written func(took time.Duration, err error)
	// Disturb is asked before each step, by whoever takes it; its error stands for
	// one of the disk's. It lets tests of other packages fill the disk; nil disturbs
	// nothing.
	Disturb func(Step) error
}

func (o Options) withDefaults() Options {
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = defaultSegmentBytes
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}
