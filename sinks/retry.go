package sinks

import (
	"time"

	"github.com/cenkalti/backoff/v4"
)

// healthyAfter is how long deliveries must have succeeded for the waits to start
// from the beginning again. One success is not enough: a destination that takes
// one event between two crashes would never be left in peace.
const healthyAfter = 10 * time.Second

// Retry says how long to wait between attempts; there is no last one.
type Retry struct {
	// Initial is the wait after the first failure, doubled with each further one.
	// Default 500ms.
	Initial time.Duration
	// Max bounds the waits. Default 1m. Each wait is up to half as long or half
	// as long again, so that many sinks do not return at the same moment.
	Max time.Duration
}

// backOff is the waits of one worker.
type backOff struct {
	initial      time.Duration
	waits        *backoff.ExponentialBackOff
	healthySince time.Time // first success after the last failure, zero after a failure
}

func newBackOff(r Retry) *backOff {
	if r.Initial <= 0 {
		r.Initial = 500 * time.Millisecond
	}
	if r.Max <= 0 {
		r.Max = time.Minute
	}
	return &backOff{initial: min(r.Initial, r.Max), waits: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(min(r.Initial, r.Max)),
		backoff.WithMaxInterval(r.Max),
		backoff.WithMultiplier(2),
		backoff.WithMaxElapsedTime(0), // never gives up
	)}
}

func (b *backOff) success() {
	if b.healthySince.IsZero() {
		b.healthySince = time.Now()
	}
}

// next is how long to wait after one more failure.
func (b *backOff) next() time.Duration {
	if !b.healthySince.IsZero() && time.Since(b.healthySince) >= healthyAfter {
		b.waits.Reset()
	}
	b.healthySince = time.Time{}
	return b.waits.NextBackOff()
}
