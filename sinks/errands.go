package sinks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sparkbridge/listener"
)

// errands does what was asked for since the last time: dead letters to be tried
// again, and replays.
func (w *Worker) errands(ctx context.Context) {
	w.retryLetters(ctx)
	if w.o.Replays == nil {
		return
	}
	for ctx.Err() == nil {
		r, ok, err := w.o.Replays.First()
		if err == nil && !ok {
			return
		}
		if err == nil {
			err = w.replay(ctx, r)
		}
		if err != nil {
			w.log.Error("replay is put off", "replay", r.ID, "err", err)
			return
		}
	}
}

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

	p := newPass(w, source)
	p.replay = r.ID
	saver := &replaySaver{w: w, replay: r}
	p.move = saver.move
	for ctx.Err() == nil {
		if w.waker.take() && w.interrupted(ctx, r.ID) {
			return nil
		}
		done, err := p.turn(ctx)
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
		if done {
			w.log.Info("replay ends", "replay", r.ID)
			return w.o.Replays.Finish(r.ID)
		}
	}
	return saver.save()
}

// interrupted does during a replay what was asked for, and reports whether that was to
// end it.
func (w *Worker) interrupted(ctx context.Context, replay string) bool {
	w.retryLetters(ctx)
	first, ok, err := w.o.Replays.First()
	if err != nil || ok && first.ID == replay {
		return false
	}
	w.log.Info("replay is cancelled", "replay", replay)
	return true
}

// replaySaver stores how far a replay is, once a second at most.
type replaySaver struct {
	w      *Worker
	replay Replay
	saved  time.Time
}

func (s *replaySaver) move(next uint64) {
	s.replay.Next = next
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
// What goes through is no dead letter any more; the others keep the new reason.
func (w *Worker) retryLetters(ctx context.Context) {
	if w.o.Letters == nil {
		return
	}
	letters, err := w.o.Letters.List(0)
	if err != nil {
		w.log.Error("dead letters cannot be read", "err", err)
		return
	}
	for _, l := range letters {
		if !l.Retry || ctx.Err() != nil {
			continue
		}
		if err := w.retryLetter(ctx, l); err != nil && ctx.Err() == nil {
			w.log.Error("dead letter was not updated", "sequence", l.Event.Sequence, "err", err)
		}
	}
}

func (w *Worker) retryLetter(ctx context.Context, l Letter) error {
	acked, err := w.attempt(ctx, []listener.Event{l.Event})
	switch {
	case acked == 1:
		w.note(func(s *State) { s.Delivered++ })
		w.log.Info("dead letter is delivered", "id", l.Event.ID, "sequence", l.Event.Sequence)
		return w.o.Letters.Drop(l.Event.Sequence)
	case ctx.Err() != nil:
		return ctx.Err() // it stays marked
	}
	l.Retry, l.Time, l.Reason = false, time.Now(), err.Error()
	l.Attempts++
	if IsPermanent(err) {
		l.Cause = CauseRefused
	}
	return w.o.Letters.Add(l)
}
