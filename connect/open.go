package connect

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
)

const (
	// How long a live server may take to refuse a position that it does not have.
	resumeTime = time.Second
	// How long a live server may take to acknowledge a listener for the second time.
	againTime = 2 * time.Second
	// How long a cancelled OpenBus has to leave the server tidy.
	tidyTime = 5 * time.Second
)

// OpenBus opens the listener bus of the session. It reads on in the operation of
// the stored resume point where Spark still has it, and else adds a listener: the
// session must exist, the bus must not be held by anybody else (ErrBusTaken).
// Weather is waited out until ctx ends; then the error is that of ctx, and unless
// Keep is set a listener that may have been added is removed again.
//
// Where Spark says that the stored operation is lost in the same driver, or its next
// message is too large, its listener still holds the bus, and is removed first. A session that was made
// again by another driver gets a new listener.
func (s *Session) OpenBus(ctx context.Context, o BusOptions) (*Bus, error) {
	o = o.withDefaults(s)
	leave, err := s.client.adds.enter(ctx, s.key())
	if err != nil {
		return nil, err
	}
	defer leave()
	p, err := s.resumable(ctx, o)
	if err != nil {
		return nil, err
	}
	for {
		resumed := p.OperationID != ""
		if !resumed {
			if p, err = s.begin(ctx, o.Store); err != nil {
				return nil, err
			}
		}
		b, err := s.attach(ctx, o, p, resumed)
		if err == nil {
			return b, nil
		}
		if err := s.startOver(ctx, o, p, resumed, err); err != nil {
			return nil, err
		}
		p = ResumePoint{}
	}
}

// resumable is the stored resume point if there is a use for it. One whose listener
// Spark never acknowledged is only tidied up.
func (s *Session) resumable(ctx context.Context, o BusOptions) (ResumePoint, error) {
	p, err := s.stored(o.Store)
	if err != nil || p.OperationID == "" {
		return ResumePoint{}, err
	}
	s.observe(p.ServerSessionID)
	switch observed := s.ServerSideID(); {
	case p.ServerSessionID != "" && observed != p.ServerSessionID:
		return ResumePoint{}, save(o.Store, ResumePoint{})
	case p.Silent:
		s.releaseSilent(ctx, p.OperationID)
		return ResumePoint{}, save(o.Store, ResumePoint{})
	}
	return p, nil
}

// begin stores the id of a new operation. From here on it may exist.
func (s *Session) begin(ctx context.Context, store ResumeStore) (ResumePoint, error) {
	err := s.Probe(ctx)
	if errors.Is(err, ErrSessionChanged) {
		s.Forget()
		err = s.Probe(ctx)
	}
	if err != nil {
		return ResumePoint{}, err
	}
	p := ResumePoint{
		UserID: s.UserID(), SessionID: s.ID(), ServerSessionID: s.ServerSideID(),
		OperationID: uuid.NewString(),
	}
	return p, save(store, p)
}

// attach starts to read the operation and waits until it is known whether that
// works.
func (s *Session) attach(ctx context.Context, o BusOptions, p ResumePoint, resumed bool) (*Bus, error) {
	q := newQueue()
	reading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	b := &Bus{
		s: s, o: o, queue: q, cancel: cancel, resumed: resumed && p.Added,
		reader: newReader(s, p, q, o), forgets: newForgets(s, p.OperationID, o.Log),
		point: p, handed: p.LastResponseID, done: p.LastResponseID,
	}
	go b.reader.run(reading)
	err := b.settle(ctx)
	if err == nil {
		b.acknowledged()
		return b, nil
	}
	b.giveUp(ctx, err)
	return nil, err
}

// settle waits until the operation has proved to be ours, or has ended.
func (b *Bus) settle(ctx context.Context) error {
	if b.point.Added {
		quiet, err := b.watch(ctx, b.reader.answered, resumeTime)
		if quiet {
			return nil // an idle bus sends nothing
		}
		return err
	}
	quiet, err := b.listen(ctx, b.o.AddTimeout)
	if quiet {
		// If the stream has lost the acknowledgement, another one brings it. Nothing else
		// tells that from a listener that will never hear anything.
		b.reader.again()
		quiet, err = b.listen(ctx, againTime)
	}
	if quiet {
		return &Error{Op: "add listener bus", Message: "Spark does not acknowledge the listener", meaning: ErrBusTaken, cause: ErrBusTaken, definite: true}
	}
	return err
}

// listen waits for the acknowledgement. It is quiet when none came over an open stream;
// a reader that waits before it tries again hears nothing either.
func (b *Bus) listen(ctx context.Context, patience time.Duration) (quiet bool, err error) {
	for {
		quiet, err := b.watch(ctx, b.reader.acked, patience)
		if !quiet || b.reader.open.Load() {
			return quiet, err
		}
	}
}

// watch waits for sign. It is quiet when a server that has proved to be alive in
// between gave none for so long; time in which the connection was broken does not
// count.
func (b *Bus) watch(ctx context.Context, sign <-chan struct{}, patience time.Duration) (quiet bool, err error) {
	for {
		breaks := b.reader.breaks.Load()
		if over, err := b.shown(ctx, sign, patience/2); over {
			return false, err
		}
		if err := b.s.Probe(ctx); err != nil {
			return false, err
		}
		if over, err := b.shown(ctx, sign, patience/2); over {
			return false, err
		}
		if b.reader.breaks.Load() == breaks {
			return true, nil
		}
	}
}

// shown waits a while for the sign or for the end of the reader; over says that
// there was one of them. Events that came before an end are worth a Bus.
func (b *Bus) shown(ctx context.Context, sign <-chan struct{}, d time.Duration) (over bool, err error) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-sign:
	case <-b.reader.done:
	case <-t.C:
		return false, nil
	case <-ctx.Done():
		return true, ctx.Err()
	}
	select {
	case <-b.reader.done:
		if b.queue.waiting() == 0 {
			return true, b.queue.ended()
		}
	default:
	}
	return true, nil
}

// acknowledged stores that the listener is ours. When that fails, the next save
// makes up for it: the bus works already.
func (b *Bus) acknowledged() {
	b.o.Log.Info("listener bus is open", "operation_id", b.point.OperationID, "resumed", b.resumed)
	if b.point.Removing { // it was not removed after all
		b.point.Removing, b.dirty = false, true
	}
	if b.point.Added {
		return
	}
	b.point.Added, b.point.ServerSessionID = true, b.s.ServerSideID()
	if err := save(b.o.Store, b.point); err != nil {
		b.dirty = true
		b.o.Log.Warn("cannot store that the listener bus is open, trying again", "err", err)
	}
}

// giveUp ends a bus that did not come to be. A cancelled one may yet be held by us:
// unless it is to be kept, it is removed if it is known to be ours, and else
// released, so that it is in nobody's way.
func (b *Bus) giveUp(ctx context.Context, err error) {
	if ctx.Err() != nil && !b.o.Keep {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
		defer cancel()
		if b.point.Added || b.acknowledgedWithin(farewell) {
			_ = b.remove(tidy) // what remains is told by the resume point
		} else {
			b.s.releaseSilent(tidy, b.point.OperationID)
		}
	}
	b.cancel()
	<-b.reader.done
	closed, cancel := context.WithCancel(context.WithoutCancel(ctx))
	cancel()
	b.forgets.close(closed)
	if !errors.Is(err, context.Canceled) {
		b.o.Log.Debug("listener bus did not open", "operation_id", b.point.OperationID, "err", err)
	}
}

// acknowledgedWithin finds out whether the listener was added after all.
func (b *Bus) acknowledgedWithin(d time.Duration) bool {
	b.reader.again()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-b.reader.acked:
		b.point.Added = true
		if err := save(b.o.Store, b.point); err != nil {
			b.o.Log.Warn("cannot store that the listener bus was open", "err", err)
		}
		return true
	case <-b.reader.done:
	case <-t.C:
	}
	return false
}
