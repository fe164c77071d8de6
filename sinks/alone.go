package sinks

import (
	"context"
	"fmt"
	"time"

	"sparkbridge/listener"
)

// trial is what is known of a query whose first event fails alone.
type trial struct {
	since    time.Time     // of the first failure alone
	last     time.Time     // of the last one
	alone    time.Duration // for how long it has failed while others went through
	attempts int
	err      error
	round    int // in which it was tried last, while it is not clear who is to blame

	behind   int       // which event behind the failing one was tried last
	behindAt time.Time // when

	// Set aside only:
	events  []listener.Event
	next    time.Time // when to try again
	backoff *backOff
}

func (t *trial) failed(err error) {
	now := time.Now()
	if t.attempts == 0 {
		t.since = now
	}
	t.attempts++
	t.last, t.err = now, err
}

// letter is what becomes of an event of the trial that is given up.
func (t *trial) letter(e listener.Event, alone time.Duration) Letter {
	return Letter{
		Event: e, Cause: CauseAlone, Attempts: t.attempts,
		Reason: fmt.Sprintf("failed alone for %s while others went through: %v", alone.Round(time.Second), t.err),
	}
}

// failedAlone follows an event that failed in a batch of its own. Either the event or
// the destination is to blame: an event of another query is tried next. Where there
// is none, it may take one behind it, see tryBehind.
func (p *pass) failedAlone(ctx context.Context, lane string, err error) {
	p.suspects, p.whole = 0, 0
	t := p.fails(lane, err)
	if p.onlyLane(lane) && p.overdue(time.Since(t.since)) {
		if n := p.tryBehind(ctx, t, p.ready); n > 0 {
			p.leave(0, n)
			delete(p.failing, lane)
			return
		}
	}
	if ctx.Err() == nil {
		p.pause(ctx, err, p.w.backoff.next())
	}
}

// fails notes a failure of the first ready event of a query.
func (p *pass) fails(lane string, err error) *trial {
	t := p.failing[lane]
	if t == nil {
		t = &trial{alone: p.blamed[lane]}
		p.failing[lane] = t
	}
	t.failed(err)
	t.round = p.round
	return t
}

// onlyLane says that all ready events are of one query.
func (p *pass) onlyLane(lane string) bool {
	for i := range p.ready {
		if p.ready[i].PartitionKey() != lane {
			return false
		}
	}
	return len(p.aside) == 0
}

func (p *pass) overdue(failing time.Duration) bool {
	return p.w.o.GiveUp > 0 && p.w.o.Letters != nil && failing >= p.w.o.GiveUp
}

// tryBehind tries an event of the same query behind the one that fails, for want of
// others, right after that has failed. If it goes through, those before it become
// dead letters: nothing may be delivered before them any more. It returns how many
// of the events are settled. It tries rarely, since a destination that comes back
// between the two attempts would make it unjust.
func (p *pass) tryBehind(ctx context.Context, t *trial, events []listener.Event) int {
	if len(events) < 2 || time.Since(t.behindAt) < p.w.o.GiveUp/8 {
		return 0
	}
	t.behindAt = time.Now()
	t.behind = t.behind%(len(events)-1) + 1
	acked, _ := p.w.attempt(ctx, events[t.behind:t.behind+1])
	if acked == 0 {
		return 0
	}
	letters := make([]Letter, t.behind)
	for i := range letters {
		letters[i] = t.letter(events[i], time.Since(t.since))
	}
	if !p.bury(ctx, letters...) {
		return 0
	}
	p.success = time.Now()
	p.ledger.settle(events[t.behind].Sequence)
	p.w.note(func(s *State) { s.Delivered++ })
	p.w.healthy()
	return t.behind + 1
}

// setAside takes the events of a query out of ready, so that others can go on.
func (p *pass) setAside(lane string, t *trial) {
	rest := make([]listener.Event, 0, len(p.ready))
	for _, e := range p.ready {
		if e.PartitionKey() == lane {
			p.putAside(t, e)
		} else {
			rest = append(rest, e)
		}
	}
	p.ready = rest
	if len(t.events) == 0 {
		return // its event has left meanwhile
	}
	t.backoff, t.next = newBackOff(p.w.o.Retry), time.Now()
	p.aside[lane] = t
}

func (p *pass) putAside(t *trial, e listener.Event) {
	t.events = append(t.events, e)
	p.asideCount++
	p.asideBytes += len(e.Payload)
}

// dueTrial is the trial that has waited long enough, nil if there is none.
func (p *pass) dueTrial(now time.Time) *trial {
	var due *trial
	for _, t := range p.aside {
		if !t.next.After(now) && (due == nil || t.next.Before(due.next)) {
			due = t
		}
	}
	return due
}

// try makes an attempt with the first event of a query that is set aside.
func (p *pass) try(ctx context.Context, t *trial) {
	e := t.events[0]
	if p.expired(&e) {
		p.end(t, 1, p.bury(ctx, p.tooOld(e)))
		return
	}
	acked, err := p.w.attempt(ctx, t.events[:1])
	switch {
	case acked == 1:
		p.ledger.settle(e.Sequence)
		p.w.note(func(s *State) { s.Delivered++ })
		delete(p.blamed, e.PartitionKey())
		p.end(t, 1, true)
		p.wentThrough()
		p.w.healthy()
	case ctx.Err() != nil:
	case IsStopped(err):
		p.w.stop(err, p.ledger.next())
	case IsPermanent(err) && p.w.o.Letters != nil:
		t.failed(err)
		p.end(t, 1, p.bury(ctx, Letter{Event: e, Cause: CauseRefused, Reason: err.Error(), Attempts: t.attempts}))
	default:
		p.failedAgain(ctx, t, err)
	}
}

// failedAgain gives an event up that has failed alone for too long. Only the time counts
// in which others went through: while all fail, the destination is to blame. The next
// event of the query need not fail for as long again, unless one has gone through.
func (p *pass) failedAgain(ctx context.Context, t *trial, err error) {
	others := p.success.After(t.last)
	if others {
		t.alone += time.Since(t.last)
	}
	t.failed(err)
	p.w.apart.fail(err, "id", t.events[0].ID, "sequence", t.events[0].Sequence)
	switch {
	case others && p.overdue(t.alone):
		p.blamed[t.events[0].PartitionKey()] = t.alone
		p.end(t, 1, p.bury(ctx, t.letter(t.events[0], t.alone)))
		return
	case p.overdue(time.Since(t.since)) && len(p.ready) == 0:
		if n := p.tryBehind(ctx, t, t.events); n > 0 {
			p.end(t, n, true)
			return
		}
	}
	t.next = time.Now().Add(max(t.backoff.next(), askedFor(err)))
}

// end lets a query go on once its first events are settled. What waited with it is
// older than all that is ready of it.
func (p *pass) end(t *trial, settled int, ok bool) {
	if !ok {
		return
	}
	lane := t.events[0].PartitionKey()
	for i := range t.events {
		p.asideCount--
		p.asideBytes -= len(t.events[i].Payload)
	}
	delete(p.aside, lane)
	p.ready = append(t.events[settled:len(t.events):len(t.events)], p.ready...)
	if len(p.aside) == 0 {
		p.w.apart.over()
	}
}
