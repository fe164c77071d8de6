package sinks

import (
	"context"
	"errors"
	"time"
)

// fullEvery is how often a sink whose dead letters are full, or cannot be stored, looks
// whether they can, besides being woken.
const fullEvery = 5 * time.Second

// bury makes dead letters, durably, and settles their events: all at once, or as many
// as there is room for. It waits until all have some. It reports false if not all became
// dead letters: ctx has ended, or a refused event is to be tried again, since something
// was asked for while it waited.
func (p *pass) bury(ctx context.Context, letters ...Letter) bool {
	asked := false
	defer func() {
		if asked {
			p.w.waker.wake() // for what else was asked for
		}
	}()
	for n := len(letters); n > 0; {
		err := p.w.o.Letters.Add(dated(letters[:n])...)
		switch {
		case err == nil:
			p.settleBuried(letters[:n])
			letters = letters[n:]
			n = min(2*n, len(letters))
		case n > 1 && errors.Is(err, ErrLettersFull):
			n /= 2
		case ctx.Err() != nil:
			return false
		default:
			if p.waitForRoom(ctx, err, letters[0].Event.Sequence) {
				asked = true
				if letters[0].Cause == CauseRefused {
					return false
				}
			}
		}
	}
	return true
}

func dated(letters []Letter) []Letter {
	now := time.Now()
	for i := range letters {
		letters[i].Time, letters[i].Event.Replay = now, ""
	}
	return letters
}

// waitForRoom waits for a while, or until something is asked for. That may make room: it
// then tries the dead letters that are to be tried, and reports true.
func (p *pass) waitForRoom(ctx context.Context, err error, waiting uint64) (asked bool) {
	w := p.w
	w.room.fail(err, "waiting_from", waiting)
	w.show()
	w.waker.sleep(ctx, fullEvery)
	woken := w.waker.take()
	if woken {
		w.resume()
	}
	if !woken && !w.isDue() {
		return false
	}
	w.again = time.Time{}
	w.retryLetters(ctx)
	return true
}

// settleBuried notes what has become dead letters.
func (p *pass) settleBuried(letters []Letter) {
	for i := range letters {
		l := &letters[i]
		p.ledger.settle(l.Event.Sequence)
		p.w.log.Warn("event is among the dead letters", "id", l.Event.ID, "sequence", l.Event.Sequence,
			"cause", l.Cause, "reason", l.Reason, "attempts", l.Attempts)
	}
	p.w.note(func(s *State) { s.Buried += uint64(len(letters)) })
	if p.w.room.over() {
		p.w.show()
	}
}
