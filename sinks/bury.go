package sinks

import (
	"context"
	"errors"
	"time"
)

// fullEvery is how often a sink whose dead letters are full, or cannot be stored, looks
// whether they can, besides being woken.
const fullEvery = 5 * time.Second

// bury makes dead letters, durably, and settles their events: all at once, or one by
// one where there is no room for all. It waits until there is room, and reports
// false if ctx ended before that.
func (p *pass) bury(ctx context.Context, letters ...Letter) bool {
	for i := range letters {
		letters[i].Time = time.Now()
	}
	trouble, woken := outage{log: p.w.log, step: "store dead letter"}, false
	defer func() {
		if woken {
			p.w.waker.wake() // for what else was asked for
		}
	}()
	for {
		err := p.w.o.Letters.Add(letters...)
		if err == nil {
			break
		}
		if errors.Is(err, ErrLettersFull) && len(letters) > 1 {
			return p.buryEach(ctx, letters)
		}
		if ctx.Err() != nil {
			return false
		}
		trouble.fail(err, "waiting_from", letters[0].Event.Sequence)
		p.w.note(func(s *State) { s.Err, s.Since, s.Failures = err, trouble.since, trouble.count })
		p.w.waker.sleep(ctx, fullEvery)
		if p.w.waker.take() {
			woken = true
			p.w.resume()
			p.w.again = time.Now()
		}
		if p.w.isDue() {
			p.w.again = time.Time{}
			p.w.retryLetters(ctx) // which makes room
		}
	}
	if trouble.over() && !p.w.stopped {
		p.w.note(func(s *State) { s.Err, s.Since, s.Failures = nil, time.Time{}, 0 })
	}
	for _, l := range letters {
		p.ledger.settle(l.Event.Sequence)
		p.w.log.Warn("event is among the dead letters", "id", l.Event.ID, "sequence", l.Event.Sequence,
			"cause", l.Cause, "reason", l.Reason, "attempts", l.Attempts)
	}
	p.w.note(func(s *State) { s.Buried += uint64(len(letters)) })
	return true
}

func (p *pass) buryEach(ctx context.Context, letters []Letter) bool {
	for _, l := range letters {
		if !p.bury(ctx, l) {
			return false
		}
		p.report() // the next one may have to wait for long
	}
	return true
}
