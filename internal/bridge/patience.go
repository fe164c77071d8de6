package bridge

import (
	"context"
	"log/slog"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// repeatAfter is how often a failure that lasts is logged again.
const repeatAfter = time.Minute

// patience spaces and logs the attempts at a write to the journal, which must
// succeed in the end.
type patience struct {
	waits *backoff.ExponentialBackOff
	since time.Time // first failure, zero while there is none
	said  time.Time
	last  string
}

func newPatience(first, longest time.Duration) *patience {
	return &patience{waits: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(first), backoff.WithMaxInterval(longest), backoff.WithMaxElapsedTime(0))}
}

func (p *patience) next() time.Duration { return p.waits.NextBackOff() }

// failed logs a failure when it is new, when it changes, and once in a while.
func (p *patience) failed(log *slog.Logger, err error) {
	now := time.Now()
	if p.since.IsZero() {
		p.since = now
	}
	if err.Error() == p.last && now.Sub(p.said) < repeatAfter {
		return
	}
	p.last, p.said = err.Error(), now
	log.Error("the journal cannot be written; nothing is lost, spark keeps the events", "err", err, "failing_for", now.Sub(p.since).Round(time.Second))
}

// over logs the end of a failure, if there was one.
func (p *patience) over(log *slog.Logger) {
	if !p.since.IsZero() {
		log.Info("the journal takes events again", "failed_for", time.Since(p.since).Round(time.Second))
	}
}

// pause waits for d, or returns the error of ctx when that ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// outlive returns a context that ends later than ctx by d.
func outlive(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		_ = pause(later, d)
		cancel()
	})
	return later, func() {
		stop()
		cancel()
	}
}

// ended says that ctx has ended, which is how a source stops and no failure.
func ended(ctx context.Context) bool { return ctx.Err() != nil }

// waited waits for d, and says whether ctx lasted that long.
func waited(ctx context.Context, d time.Duration) bool { return pause(ctx, d) == nil }
