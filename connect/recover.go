package connect

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sparkbridge/connect/sparkpb"
)

// startOver tidies up after an attempt that has failed, and returns nil when
// another one with a new operation is the right thing to do.
func (s *Session) startOver(ctx context.Context, o BusOptions, p ResumePoint, resumed bool, err error) error {
	switch {
	case errors.Is(err, ErrBusTaken):
		return s.taken(ctx, o.Store, p, err)
	case errors.Is(err, io.EOF): // of an operation that we have finished
	case errors.Is(err, ErrBusRemoved):
		return errors.Join(err, save(o.Store, ResumePoint{}))
	case errors.Is(err, ErrUnsupported):
		return errors.Join(err, save(o.Store, ResumePoint{}))
	case errors.Is(err, ErrSessionChanged):
		s.Forget()
	case !resumed:
		return err
	case errors.Is(err, ErrOperationNotFound), errors.Is(err, ErrOperationExists):
	case errors.Is(err, ErrOperationAbandoned), errors.Is(err, ErrPositionLost), errors.Is(err, ErrTooLarge):
		if err := s.removeZombie(ctx, o, p); err != nil {
			return err
		}
	default:
		return err
	}
	o.Log.Info("the earlier listener bus is lost, opening a new one", "operation_id", p.OperationID, "err", err)
	return save(o.Store, ResumePoint{})
}

// taken tidies up after a silent listener. That it was silent is stored first: after
// a crash nobody may take its operation for one that holds the bus, and remove the
// listener of somebody else.
func (s *Session) taken(ctx context.Context, store ResumeStore, p ResumePoint, err error) error {
	p.Silent = true
	if err := save(store, p); err != nil {
		return err
	}
	s.releaseSilent(ctx, p.OperationID)
	return errors.Join(err, save(store, ResumePoint{}))
}

// releaseSilent releases an operation that never got the bus; open, it would make
// the owner's own release of the session fail. Spark answers INTERNAL the first
// time, and the second time that it is done. This is a courtesy: failures are left
// to the server's own cleaning.
func (s *Session) releaseSilent(ctx context.Context, op string) {
	for range 2 {
		err := s.link.call(ctx, callTime, func(ctx context.Context, spark sparkpb.SparkConnectServiceClient) error {
			return s.release(ctx, spark, s.releaseRequest(op))
		})
		if err == nil {
			return
		}
	}
}

// removeZombie frees the bus of a listener that is ours, as Spark acknowledged it,
// and whose operation cannot be read any more.
func (s *Session) removeZombie(ctx context.Context, o BusOptions, p ResumePoint) error {
	if !p.Added || p.Removed || p.Removing {
		return nil
	}
	o.Log.Warn("removing our own listener, whose operation is lost", "operation_id", p.OperationID)
	if err := s.removeOwn(ctx, o, p, nil); err != nil {
		return fmt.Errorf("free listener bus of lost operation: %w", err)
	}
	s.releaseSilent(ctx, p.OperationID)
	return nil
}

// removeOwn removes our listener. That it is about to is stored before, so that after a
// crash in between nobody removes the listener of another client, which may have come
// meanwhile. Where it cannot be stored, the bus is freed all the same.
func (s *Session) removeOwn(ctx context.Context, o BusOptions, p ResumePoint, completed <-chan struct{}) error {
	note := func(removing bool) {
		p.Removing = removing
		if err := save(o.Store, p); err != nil {
			o.Log.Warn("cannot store whether the listener is being removed", "err", err)
		}
	}
	note(true)
	err := s.removeListener(ctx, completed)
	if err != nil {
		note(false)
	}
	return err
}
