package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"sparkbridge/connect/sparkpb"
)

// operation is one plan that runs once, over any number of streams: Spark keeps what it
// answers while we are away, and ends each stream after two minutes.
type operation struct {
	s    *Session
	op   string // what it is, for errors
	id   string
	plan *sparkpb.Plan
	see  func(*sparkpb.ExecutePlanResponse)

	exists bool   // the server has it: never start it again
	last   string // the last response that was seen
	waits  waits
}

// perform runs a plan that has an effect or takes long, exactly once, and shows each frame
// of its answer to see. A lost connection is waited out until ctx ends; then the plan is
// interrupted, as far as the server can be reached, and the error is that of ctx. What
// Spark refuses is an *Error with the whole message.
func (s *Session) perform(ctx context.Context, op string, plan *sparkpb.Plan, see func(*sparkpb.ExecutePlanResponse)) error {
	o := &operation{s: s, op: op, id: uuid.NewString(), plan: plan, see: see, waits: newWaits()}
	return s.living(ctx, op, func(ctx context.Context) error {
		err := o.run(ctx)
		o.release(ctx)
		return err
	})
}

func (o *operation) run(ctx context.Context) error {
	for {
		began, from := time.Now(), o.last
		err := o.follow(ctx)
		switch {
		case errors.Is(err, errComplete):
			o.s.notices.over(o.op)
			return nil
		case err == nil && (o.last != from || time.Since(began) >= hollowStream):
			continue
		case err == nil:
			err = errHollow
		}
		e := classify(o.op, err)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", o.op, ctx.Err())
		case errors.Is(e, ErrOperationExists) && !o.exists: // Spark 3.5 does not attach by itself
			o.exists = true
			continue
		case e.answered():
			o.s.notices.over(o.op)
			return o.s.detailed(ctx, e)
		}
		wait := o.waits.next(e)
		o.s.notices.failed(o.s.log, e, wait)
		if err := o.s.link.pause(ctx, wait, e.floor()); err != nil {
			return fmt.Errorf("%s: %w; the last answer: %s", o.op, err, e.Error())
		}
	}
}

// follow reads one stream to its end; nil is a clean one, with which the operation is
// not over.
func (o *operation) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(silenceLimit, func() { cancel(errSilent) })
	defer watchdog.Stop()
	stream, err := o.start(ctx)
	for err == nil {
		var frame *sparkpb.ExecutePlanResponse
		if frame, err = stream.Recv(); err == nil {
			watchdog.Reset(silenceLimit)
			err = o.take(frame)
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(context.Cause(ctx), errSilent):
		// Calls that get no answer replace a connection that is dead.
		_ = o.s.link.call(context.WithoutCancel(ctx), callTime, o.s.probe)
		return errSilent
	}
	return err
}

// start begins the operation, or reads on in it. Beginning it again under the same id
// attaches to it, so that is right until the server has shown that it has it.
func (o *operation) start(ctx context.Context) (frames, error) {
	spark := o.s.link.current().spark
	if o.exists {
		return opened(spark.ReattachExecute(o.s.outgoing(ctx), o.s.reattachRequest(o.id, o.last), o.s.receiveLimit()))
	}
	// A plan would create a session that is not there.
	if err := o.s.link.call(ctx, callTime, o.s.probe); err != nil {
		return nil, err
	}
	return opened(spark.ExecutePlan(o.s.outgoing(ctx), o.s.reattachable(o.id, o.plan), o.s.receiveLimit()))
}

func (o *operation) take(frame *sparkpb.ExecutePlanResponse) error {
	o.s.observe(frame.GetServerSideSessionId())
	o.exists = true
	o.waits.reset()
	if id := frame.GetResponseId(); id != "" {
		o.last = id
	}
	if frame.GetResultComplete() != nil {
		return errComplete
	}
	o.see(frame)
	return nil
}

// release lets the server forget the operation, which interrupts one that still runs.
// It is a courtesy: failures are left to the server's own cleaning.
func (o *operation) release(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	err := o.s.link.call(ctx, farewell, func(ctx context.Context, spark sparkpb.SparkConnectServiceClient) error {
		return o.s.release(ctx, spark, o.s.releaseRequest(o.id))
	})
	if err != nil {
		o.s.log.Debug("release was not answered", "err", err)
	}
}
