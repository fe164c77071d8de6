package sinks

import (
	"context"
	"errors"
	"io"
	"time"

	"sparkbridge/listener"
)

const (
	// maxAhead bounds what is read ahead of an event that fails, to see whether others
	// go through, and maxAside what waits behind such events.
	maxAhead, maxAheadBytes = 1024, 8 << 20
	maxAside, maxAsideBytes = 8192, 32 << 20
	// glance is how long it takes at most to see whether the source has something.
	glance = 10 * time.Millisecond
)

// pass is one way through events of the journal: the worker's own, or a replay.
//
// An event is first held back by the thinner, if it is to be; then it is ready; and
// it leaves as delivered or as a dead letter. When one event fails alone while
// those of other queries go through, its query is set aside: it waits in a trial of
// its own, and the others go on. The cursor stays at the first event that has not
// left.
type pass struct {
	w      *Worker
	source Source
	replay string       // id, empty for the worker's own way
	move   func(uint64) // takes the first sequence that is not settled
	buried map[uint64]bool

	thin   *thinner
	ledger *ledger
	moved  uint64
	ended  bool        // the source has no more
	lost   []LostError // ranges that retention took, until someone counts them
	// current says that the source had nothing when it was last asked: what it brings
	// from now on is new. Until then only the events themselves tell how late it is.
	current bool
	tried   bool // a query that is set aside had the last turn

	ready    []listener.Event
	suspects int // events in front of ready of which one fails; 0 while none is searched
	whole    int // failures in a row of a batch as a whole
	failing  map[string]*trial
	round    int

	aside      map[string]*trial
	blamed     map[string]time.Duration // of queries whose events were given up: how long they had failed alone
	asideCount int
	asideBytes int
	success    time.Time // the last time that something went through
}

func newPass(w *Worker, source Source, l *ledger) *pass {
	return &pass{
		w: w, source: source, ledger: l, thin: newThinner(w.o.ProgressEvery),
		failing: map[string]*trial{}, aside: map[string]*trial{}, blamed: map[string]time.Duration{},
	}
}

// turn reads if nothing is ready, or makes one attempt. Queries that are set aside have
// every other turn at most, however many of them are due. done says that a source which
// ends has been gone through. An error means that the source cannot be read; the end of
// ctx is none.
func (p *pass) turn(ctx context.Context) (done bool, err error) {
	defer p.report()
	if p.current {
		p.thin.elapsed(time.Now(), p.admit)
	}
	t := p.dueTrial(time.Now())
	if t != nil && !p.tried {
		p.tried = true
		p.try(ctx, t)
		return false, nil
	}
	p.tried = false
	switch {
	case len(p.ready) > 0:
		p.deliver(ctx)
		return false, nil
	case p.ended && len(p.aside) == 0:
		return true, nil
	}
	until, soonest := p.nextTime(), time.Now().Add(glance)
	if !until.IsZero() && until.Before(soonest) {
		until = soonest // what lies ready comes first
	}
	return false, p.read(ctx, until)
}

// read waits for events until a time, or until the worker is woken. It reads nothing
// while too much waits already.
func (p *pass) read(ctx context.Context, until time.Time) error {
	waiting, cancel := p.w.waker.wait(ctx, until)
	defer cancel()
	if p.ended || p.asideCount >= maxAside || p.asideBytes >= maxAsideBytes {
		<-waiting.Done()
		return nil
	}
	events, err := p.source.Next(waiting, maxEvents, maxBytes)
	var lost *LostError
	switch {
	case err == nil:
		p.current = false
		for _, e := range events {
			p.take(e)
		}
	case errors.As(err, &lost):
		p.w.log.Error("events lost to retention", "from", lost.From, "to", lost.To)
		p.ledger.pass(lost.To)
		if p.replay != "" {
			p.lost = append(p.lost, *lost)
		}
	case errors.Is(err, io.EOF):
		p.ended = true
		p.thin.flush(p.admit)
	case waiting.Err() == nil:
		return err
	case errors.Is(waiting.Err(), context.DeadlineExceeded):
		p.current = p.replay == "" // nothing of a replay is new
	}
	return nil
}

// take lets an event in, if it is wanted.
func (p *pass) take(e listener.Event) {
	e.Replay = p.replay
	if p.moved == 0 {
		p.moved = e.Sequence // nothing to tell until something is settled
	}
	p.ledger.begin(e.Sequence)
	p.thin.elapsed(e.Recorded, p.admit)
	if p.buried[e.Sequence] || !p.w.o.Match.Wants(&e) {
		p.ledger.settle(e.Sequence)
		return
	}
	p.thin.offer(e, p.admit, func(e listener.Event) { p.ledger.settle(e.Sequence) })
}

// admit makes an event ready, unless its query is set aside.
func (p *pass) admit(e listener.Event) {
	if t := p.aside[e.PartitionKey()]; t != nil {
		p.putAside(t, e)
		return
	}
	p.ready = append(p.ready, e)
}

// delivered settles n events at a place of ready.
func (p *pass) delivered(at, n int) {
	for _, e := range p.ready[at : at+n] {
		p.ledger.settle(e.Sequence)
		delete(p.blamed, e.PartitionKey())
	}
	p.leave(at, n)
	p.w.note(func(s *State) { s.Delivered += uint64(n) })
}

// leave takes events out of ready. While a failing one is searched, it is among those
// that the last failed batch had besides.
func (p *pass) leave(at, n int) {
	p.whole = 0
	if at == 0 {
		p.suspects = max(0, p.suspects-n)
		clear(p.ready[:n]) // lets go of the payloads
		p.ready = p.ready[n:]
		return
	}
	p.ready = append(p.ready[:at:at], p.ready[at+n:]...)
}

// nextTime is when there is something to do even if nothing is read.
func (p *pass) nextTime() time.Time {
	at := p.thin.next()
	if again := p.w.again; at.IsZero() || !again.IsZero() && again.Before(at) {
		at = again
	}
	for _, t := range p.aside {
		if at.IsZero() || t.next.Before(at) {
			at = t.next
		}
	}
	return at
}

// report tells the cursor and the state where the pass is.
func (p *pass) report() {
	next := p.ledger.next()
	p.w.note(func(s *State) {
		s.Held, s.Aside, s.Open = p.thin.events, p.asideCount, len(p.ledger.open)
		if p.replay == "" {
			s.Read = p.ledger.read
		}
	})
	if next > p.moved {
		p.moved = next
		p.move(next)
	}
}

// skipBuried remembers which events have become dead letters before the cursor has
// passed them: a restart must not deliver them.
func (p *pass) skipBuried() error {
	if p.w.o.Letters == nil {
		return nil
	}
	p.buried = map[uint64]bool{}
	return p.w.o.Letters.Each(0, func(l Letter) error {
		p.buried[l.Event.Sequence] = true
		return nil
	})
}
