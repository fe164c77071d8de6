package sinks

import (
	"context"
	"time"

	"sparkbridge/listener"
)

// deliver makes one attempt with events that are ready: as many as may go together,
// or fewer while one that fails is searched, or one of a query that has not failed.
func (p *pass) deliver(ctx context.Context) {
	if p.expire(ctx) {
		return
	}
	at, n := p.choose()
	acked, err := p.w.attempt(ctx, p.ready[at:at+n])
	lane := p.ready[at].PartitionKey()
	if acked > 0 {
		p.delivered(at, acked)
		delete(p.failing, lane)
		p.wentThrough()
	}
	switch {
	case err == nil:
		p.w.healthy()
	case ctx.Err() != nil:
	case IsStopped(err):
		p.w.stop(err, p.ledger.next())
	case IsPermanent(err) && p.w.o.Letters != nil:
		p.refuse(ctx, at, err)
	case acked > 0:
		p.pause(ctx, err, p.w.backoff.next())
	case n == 1:
		p.failedAlone(ctx, lane, err)
	default:
		p.failedTogether(ctx, n, err)
	}
}

// choose returns which of the ready events to try.
func (p *pass) choose() (at, n int) {
	if len(p.failing) == 0 {
		return 0, p.batch()
	}
	for i := range p.ready {
		if t := p.failing[p.ready[i].PartitionKey()]; t == nil || t.round != p.round {
			return i, 1
		}
	}
	p.round++ // each query has had its turn
	return 0, 1
}

// batch is how many events from the front go together.
func (p *pass) batch() int {
	n, bytes := 0, 0
	limit := maxEvents
	if p.suspects > 0 {
		limit = (p.suspects + 1) / 2
	}
	for n < len(p.ready) && n < limit {
		bytes += len(p.ready[n].Payload)
		if n > 0 && bytes > maxBytes {
			break
		}
		n++
	}
	return n
}

// failedTogether follows a batch that failed as a whole. Once may be chance; when it
// fails again, the first half of it is tried, and so on down to one event.
func (p *pass) failedTogether(ctx context.Context, n int, err error) {
	wait := p.w.backoff.initial
	if p.whole++; p.whole > 1 || p.suspects > 0 {
		p.suspects = n
	} else {
		wait = p.w.backoff.next()
	}
	p.pause(ctx, err, wait)
}

// wentThrough notes that the destination takes events: those that fail alone are to
// blame themselves.
func (p *pass) wentThrough() {
	p.success = time.Now()
	for lane, t := range p.failing {
		p.setAside(lane, t)
	}
	clear(p.failing)
}

// refuse makes a dead letter of a ready event.
func (p *pass) refuse(ctx context.Context, at int, err error) {
	e := p.ready[at]
	t := p.fails(e.PartitionKey(), err)
	if p.bury(ctx, Letter{Event: e, Cause: CauseRefused, Reason: err.Error(), Attempts: t.attempts}) {
		delete(p.failing, e.PartitionKey())
		p.leave(at, 1)
		p.wentThrough()
		p.w.healthy()
	}
}

// pause waits after a failure, and looks meanwhile for other events where one has
// failed alone for several times.
func (p *pass) pause(ctx context.Context, err error, wait time.Duration) {
	wait = p.w.failed(err, &p.ready[0], wait)
	until := time.Now().Add(wait)
	if p.wantsOthers() {
		_ = p.read(ctx, until) // what is wrong with the source shows again, when nothing is ready
	}
	p.w.waker.sleep(ctx, time.Until(until))
}

// wantsOthers tells whether events of other queries would show if it is the
// destination that fails.
func (p *pass) wantsOthers() bool {
	const often = 3
	bytes := 0
	for i := range p.ready {
		bytes += len(p.ready[i].Payload)
	}
	for _, t := range p.failing {
		if t.attempts >= often {
			return len(p.ready) < maxAhead && bytes < maxAheadBytes
		}
	}
	return false
}

// expire makes dead letters of the ready events in front that are too old. It
// reports whether there were any.
func (p *pass) expire(ctx context.Context) bool {
	n := 0
	for n < len(p.ready) && n < maxEvents && p.expired(&p.ready[n]) {
		n++
	}
	if n == 0 {
		return false
	}
	letters := make([]Letter, n)
	for i := range letters {
		letters[i] = p.tooOld(p.ready[i])
	}
	if p.bury(ctx, letters...) {
		p.leave(0, n)
	}
	return true
}

func (p *pass) expired(e *listener.Event) bool {
	return p.w.o.MaxAge > 0 && p.w.o.Letters != nil && p.replay == "" && time.Since(e.Recorded) > p.w.o.MaxAge
}

func (p *pass) tooOld(e listener.Event) Letter {
	return Letter{Event: e, Cause: CauseExpired, Reason: "older than " + p.w.o.MaxAge.String() + " when its turn came"}
}
