package sinks

import (
	"log/slog"
	"time"
)

// remindEvery is how often a failure that lasts is logged again.
const remindEvery = time.Minute

// outage follows failures of one kind and logs what is worth reading: the first
// one, a different one, a reminder while they last, and the recovery. It belongs
// to one goroutine.
type outage struct {
	log  *slog.Logger
	step string // what fails, for the log

	err    error     // the last failure, nil while there is none
	since  time.Time // of the first failure in a row
	count  int       // failures in a row
	text   string    // of the failure logged last
	logged time.Time
}

func (o *outage) fail(err error, attrs ...any) {
	now := time.Now()
	if o.count == 0 {
		o.since = now
	}
	o.count++
	o.err = err
	text := err.Error()
	if o.count > 1 && text == o.text && now.Sub(o.logged) < remindEvery {
		return
	}
	o.text, o.logged = text, now
	attrs = append([]any{"step", o.step, "err", err, "failures", o.count, "failing_for", now.Sub(o.since)}, attrs...)
	o.log.Warn("sink fails, will try again", attrs...)
}

// over ends the outage, and tells whether there was one.
func (o *outage) over() bool {
	if o.count == 0 {
		return false
	}
	o.log.Info("sink works again", "step", o.step, "failures", o.count, "failed_for", time.Since(o.since))
	o.err, o.since, o.count, o.text = nil, time.Time{}, 0, ""
	return true
}
