package connect

import (
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Spark's own retry policy, except that it never gives up.
const (
	firstWait     = 50 * time.Millisecond
	waitFactor    = 4
	longestWait   = time.Minute
	jitterFrom    = 2 * time.Second
	largestJitter = 500 * time.Millisecond
	// A server may ask for more patience than the policy has, up to this.
	longestRetryAfter = 10 * time.Minute
)

// waits are the pauses between the tries of one thing.
type waits struct{ policy *backoff.ExponentialBackOff }

func newWaits() waits {
	return waits{backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(firstWait),
		backoff.WithMultiplier(waitFactor),
		backoff.WithMaxInterval(longestWait),
		backoff.WithRandomizationFactor(0),
		backoff.WithMaxElapsedTime(0),
	)}
}

// next is how long to wait after one more failure, never less than what the server
// has asked for.
func (w waits) next(e *Error) time.Duration {
	d := w.policy.NextBackOff()
	if d >= jitterFrom {
		d += rand.N(largestJitter)
	}
	return max(d, e.floor())
}

// reset starts over: something was answered.
func (w waits) reset() { w.policy.Reset() }

// floor is the pause that the server has asked for, within reason.
func (e *Error) floor() time.Duration { return min(e.RetryAfter, longestRetryAfter) }

// A failure that goes on is logged again after this.
const noticeEvery = time.Minute

// notice says that something fails: at once, when the failure changes, once in a
// while, and when it is over.
type notice struct {
	log   *slog.Logger
	kind  string
	times int
	since time.Time
	said  time.Time
}

func (n *notice) failed(e *Error, wait time.Duration) {
	now := time.Now()
	if n.times == 0 {
		n.since = now
	}
	n.times++
	kind := kindOf(e)
	if kind == n.kind && now.Sub(n.said) < noticeEvery {
		return
	}
	n.kind, n.said = kind, now
	n.log.Warn("spark connect does not answer, trying again",
		"op", e.Op, "err", e, "next_try_in", wait, "tries", n.times, "failing_for", now.Sub(n.since))
}

func (n *notice) over() {
	if n.times == 0 {
		return
	}
	n.log.Info("spark connect answers again", "tries", n.times, "failed_for", time.Since(n.since))
	*n = notice{log: n.log}
}

// notices are one notice for each question. They outlive a question that was given up,
// so that asking it anew does not say the same again. The zero value is ready to use.
type notices struct {
	mu sync.Mutex
	of map[string]*notice
}

func (n *notices) failed(log *slog.Logger, e *Error, wait time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = make(map[string]*notice)
	}
	if n.of[e.Op] == nil {
		n.of[e.Op] = &notice{log: log}
	}
	n.of[e.Op].failed(e, wait)
}

func (n *notices) over(op string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if failing := n.of[op]; failing != nil {
		failing.over()
		delete(n.of, op)
	}
}
