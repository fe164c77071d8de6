package sinks

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"sparkbridge/listener"
)

const (
	// errandTime is how long dead letters are tried until events have a turn again, and
	// eventTime how long that is.
	errandTime, eventTime = 10 * time.Second, 5 * time.Second
	// errandsAgain is when errands are looked for unasked, after one has failed for
	// another reason than the destination.
	errandsAgain = time.Minute
)

// errands does what was asked for since the last time: dead letters to be tried
// again, and replays.
func (w *Worker) errands(ctx context.Context) {
	w.again = time.Time{}
	w.retryLetters(ctx)
	if w.o.Replays == nil {
		return
	}
	for ctx.Err() == nil && !w.stopped {
		r, ok, err := w.o.Replays.First()
		if err == nil && !ok {
			return
		}
		if err == nil {
			err = w.replay(ctx, r)
		}
		if err != nil {
			w.postpone(fmt.Errorf("replay %s: %w", r.ID, err))
			return
		}
	}
}

// postpone says why an errand is not done, and lets it be tried again later.
func (w *Worker) postpone(err error) {
	w.log.Error("what was asked for is put off", "err", err)
	w.again = time.Now().Add(errandsAgain)
}

func (w *Worker) isDue() bool { return !w.again.IsZero() && !time.Now().Before(w.again) }

// replay delivers a range of the journal once more. It moves no cursor but the
// replay's own.
func (w *Worker) replay(ctx context.Context, r Replay) (err error) {
	w.log.Info("replay begins", "replay", r.ID, "from", r.From, "to", r.To, "next", r.Next)
	source, closeSource, err := w.o.Replays.Open(max(r.From, r.Next), r.To)
	if err != nil {
		return fmt.Errorf("open range: %w", err)
	}
	defer func() { err = errors.Join(err, closeSource()) }()
	w.note(func(s *State) { s.Replay = r.ID })
	defer w.note(func(s *State) { s.Replay = "" })

	p := newPass(w, source, new(ledger))
	p.replay = r.ID
	saver := &replaySaver{w: w, pass: p, replay: r}
	p.move = saver.move
	for ctx.Err() == nil {
		if (w.waker.take() || w.isDue()) && w.interrupted(ctx, r.ID) {
			return nil
		}
		if w.stopped {
			break // it goes on when the worker does
		}
		done, err := p.turn(ctx)
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		if done && !w.stopped {
			if n := saver.replay.Missing; n > 0 {
				w.log.Error("replay ends without what retention took meanwhile", "replay", r.ID, "missing", n)
			} else {
				w.log.Info("replay ends", "replay", r.ID)
			}
			return w.o.Replays.Finish(r.ID)
		}
	}
	return saver.save()
}

// interrupted does during a replay what was asked for, and reports whether that was to
// end it.
func (w *Worker) interrupted(ctx context.Context, replay string) bool {
	w.again = time.Time{}
	w.retryLetters(ctx)
	first, ok, err := w.o.Replays.First()
	if err != nil {
		w.postpone(fmt.Errorf("look whether replay %s is cancelled: %w", replay, err))
		return false
	}
	if ok && first.ID == replay {
		return false
	}
	w.log.Info("replay is cancelled", "replay", replay)
	return true
}

// replaySaver stores how far a replay is, once a second at most.
type replaySaver struct {
	w      *Worker
	pass   *pass
	replay Replay
	saved  time.Time
}

func (s *replaySaver) move(next uint64) {
	s.replay.Next = next
	// What is lost further on is read, and lost, again after a restart.
	for lost := s.pass.lost; len(lost) > 0 && lost[0].To < next; lost = s.pass.lost {
		s.replay.Missing += lost[0].To - lost[0].From + 1
		s.pass.lost = lost[1:]
	}
	if time.Since(s.saved) >= time.Second {
		if err := s.save(); err != nil {
			s.w.log.Warn("the place of the replay was not stored", "replay", s.replay.ID, "err", err)
		}
		s.saved = time.Now()
	}
}

func (s *replaySaver) save() error {
	if s.replay.Next == 0 {
		return nil
	}
	return s.w.o.Replays.Save(s.replay)
}

// retryLetters tries the dead letters once more that are marked for it, each alone.
// What goes through is no dead letter any more; the others keep the new reason. After
// a while it leaves the rest for later: events that come must not wait for thousands
// of attempts that fail.
func (w *Worker) retryLetters(ctx context.Context) {
	if w.o.Letters == nil {
		return
	}
	marked, err := w.marked()
	if err != nil {
		w.postpone(fmt.Errorf("read dead letters: %w", err))
		return
	}
	began := time.Now()
	for _, sequence := range marked {
		switch {
		case w.stopped || ctx.Err() != nil:
			return
		case time.Since(began) >= errandTime:
			w.again = time.Now().Add(eventTime)
			return
		}
		if err := w.retryLetter(ctx, sequence); err != nil && ctx.Err() == nil {
			w.postpone(fmt.Errorf("retry dead letter %d: %w", sequence, err))
		}
	}
}

// marked are the sequences of the dead letters that are to be tried.
func (w *Worker) marked() (sequences []uint64, err error) {
	err = w.o.Letters.Each(0, func(l Letter) error {
		if l.Retry {
			sequences = append(sequences, l.Event.Sequence)
		}
		return nil
	})
	return sequences, err
}

// errFound ends an iteration.
var errFound = errors.New("found")

// letter reads one dead letter; ok is false if it is there no more, or not to be tried
// any more.
func (w *Worker) letter(sequence uint64) (found Letter, ok bool, err error) {
	err = w.o.Letters.Each(sequence, func(l Letter) error {
		found = l
		return errFound
	})
	if err != nil && !errors.Is(err, errFound) {
		return found, false, err
	}
	return found, found.Retry && found.Event.Sequence == sequence, nil
}

func (w *Worker) retryLetter(ctx context.Context, sequence uint64) error {
	l, ok, err := w.letter(sequence)
	if err != nil || !ok {
		return err
	}
	e := l.Event
	e.Replay = "retry-" + strconv.FormatInt(l.Time.UnixNano(), 36) // of each retry another: it is to be stored
	acked, err := w.attempt(ctx, []listener.Event{e})
	switch {
	case acked == 1:
		w.healthy()
		w.note(func(s *State) { s.Delivered++ })
		w.log.Info("dead letter is delivered", "id", l.Event.ID, "sequence", l.Event.Sequence)
		return w.o.Letters.Drop(l.Event.Sequence)
	case ctx.Err() != nil:
		return ctx.Err() // it stays marked
	case IsStopped(err):
		w.stop(err, l.Event.Sequence)
		return nil // likewise
	}
	if _, kept, lookErr := w.letter(sequence); lookErr != nil || !kept {
		return lookErr // it was dropped meanwhile, and stays so
	}
	l.Retry, l.Time, l.Reason = false, time.Now(), err.Error()
	l.Attempts++
	if IsPermanent(err) {
		l.Cause = CauseRefused
	}
	return w.o.Letters.Add(l)
}
