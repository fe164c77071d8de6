package connect

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sparkbridge/connect/sparkpb"
	"sparkbridge/listener"
)

const (
	// Spark ends a stream after two minutes, cleanly. One that gives neither that nor
	// a response for longer than this is dead, or its server keeps streams longer;
	// reattaching harms in neither case.
	silenceLimit = 150 * time.Second
	// A stream that ends sooner than this without a response has not been useful.
	hollowStream = time.Second
	// After this long without a rival, the next one is met with patience again.
	rivalForgotten = 30 * time.Second
)

var (
	errComplete = errors.New("the operation is complete")
	errSilent   = errors.New("nothing came over the stream for too long")
	errHollow   = errors.New("the stream ended at once and without a response")
	errAgain    = errors.New("the stream is opened again, to see whether it is it that is silent")
)

// moment is how long a broken connection is no news yet.
const moment = 2 * time.Second

// reader follows one operation for as long as it lives, over any number of
// streams. Its run is a goroutine that the Bus owns.
type reader struct {
	s     *Session
	op    string
	queue *queue
	log   *slog.Logger

	last  string // the last response that was queued
	added bool   // the operation exists: never start it again

	waits  waits
	notice notice
	outage func(error)
	out    bool // the outage was told
	rivals waits

	reattached func(broken bool)
	broken     bool // the last stream broke, and none has proved to work since
	rival      struct {
		times int
		last  time.Time
	}

	cut  atomic.Pointer[context.CancelCauseFunc] // of the stream that is read, or of the wait for the next
	open atomic.Bool                             // a stream is read

	answered  chan struct{} // closed when the server has shown that it has the operation
	answer    sync.Once
	acked     chan struct{} // closed when the listener was acknowledged
	ack       sync.Once
	breaks    atomic.Int64  // how often a stream broke
	removing  atomic.Bool   // we have asked for the end
	completed chan struct{} // closed when the operation is complete
	done      chan struct{}
}

func newReader(s *Session, p ResumePoint, q *queue, o BusOptions) *reader {
	r := &reader{
		s: s, op: p.OperationID, queue: q, log: o.Log,
		last: p.LastResponseID, added: p.Added,
		waits: newWaits(), rivals: newWaits(), notice: notice{log: o.Log}, outage: o.Outage, reattached: o.Reattached,
		answered: make(chan struct{}), acked: make(chan struct{}),
		completed: make(chan struct{}), done: make(chan struct{}),
	}
	r.removing.Store(p.Removed)
	return r
}

func (r *reader) run(ctx context.Context) {
	defer close(r.done)
	r.queue.end(r.read(ctx))
}

// read follows stream after stream until the operation is over, the server gives a
// definite answer, or ctx ends.
func (r *reader) read(ctx context.Context) error {
	for {
		began, from := time.Now(), r.last
		err := r.follow(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		switch {
		case err == nil && (r.last != from || time.Since(began) >= hollowStream):
			r.healthy()
			r.exists()
			r.reattached(false)
			continue
		case err == nil:
			err = errHollow
		case errors.Is(err, errComplete):
			return r.completion()
		case errors.Is(err, errSilent):
			r.suspect(ctx)
			continue
		case errors.Is(err, errAgain):
			continue
		}
		if err := r.interrupted(ctx, classify("read listener bus", err)); err != nil {
			return err
		}
	}
}

// follow reads one stream to its end; nil is a clean one.
func (r *reader) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.cut.Store(&cancel)
	watchdog := time.AfterFunc(silenceLimit, func() { cancel(errSilent) })
	defer watchdog.Stop()
	stream, err := r.start(ctx)
	r.open.Store(err == nil)
	defer r.open.Store(false)
	for err == nil {
		var response *sparkpb.ExecutePlanResponse
		if response, err = stream.Recv(); err == nil {
			watchdog.Stop() // a full queue is not the server's silence
			err = r.take(ctx, response)
			watchdog.Reset(silenceLimit)
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(context.Cause(ctx), errSilent):
		return errSilent
	case errors.Is(context.Cause(ctx), errAgain):
		return errAgain
	}
	return err
}

// start begins the operation, or reads on behind the last response. Starting it again
// under the same id attaches to it, so that is right until an answer has been seen.
func (r *reader) start(ctx context.Context) (frames, error) {
	spark := r.s.link.current().spark
	if r.added || r.last != "" {
		return opened(spark.ReattachExecute(r.s.outgoing(ctx), r.s.reattachRequest(r.op, r.last), r.s.receiveLimit()))
	}
	// A plan would create a session that is not there.
	if err := r.s.link.call(ctx, callTime, r.s.probe); err != nil {
		return nil, err
	}
	return opened(spark.ExecutePlan(r.s.outgoing(ctx), r.s.addRequest(r.op), r.s.receiveLimit()))
}

// take queues what a response holds. One without events moves the position too.
func (r *reader) take(ctx context.Context, response *sparkpb.ExecutePlanResponse) error {
	r.healthy()
	r.s.observe(response.GetServerSideSessionId())
	if response.GetResultComplete() != nil {
		return errComplete
	}
	result := response.GetStreamingQueryListenerEventsResult()
	f := frame{id: response.GetResponseId(), bytes: 64}
	for i, e := range result.GetEvents() {
		f.events = append(f.events, listener.Raw{Type: int32(e.GetEventType()), JSON: []byte(e.GetEventJson()), ResponseID: f.id, Index: i})
		f.bytes += len(e.GetEventJson())
	}
	if err := r.queue.push(ctx, f); err != nil {
		return err
	}
	if f.id != "" {
		r.last = f.id
	}
	r.exists()
	if result.GetListenerBusListenerAdded() {
		r.added = true
		r.ack.Do(func() { close(r.acked) })
	}
	return nil
}

// exists notes that the server has the operation.
func (r *reader) exists() { r.answer.Do(func() { close(r.answered) }) }

func (r *reader) healthy() {
	if r.broken {
		r.broken = false
		r.reattached(true)
	}
	r.waits.reset()
	r.notice.over()
	if r.out {
		r.out = false
		r.outage(nil)
	}
}

// completion is what the end of the operation means.
func (r *reader) completion() error {
	close(r.completed)
	if r.removing.Load() {
		return io.EOF
	}
	return &Error{Op: "read listener bus", Message: "the operation ended with result_complete, which nobody here asked for", meaning: ErrBusRemoved, cause: errComplete, definite: true}
}

// interrupted decides how to go on after a stream that broke: with the error when
// it is definite, else after a pause.
func (r *reader) interrupted(ctx context.Context, e *Error) error {
	if e.Definite() {
		return e
	}
	r.breaks.Add(1)
	r.broken = r.last != "" || r.added
	var wait time.Duration
	if errors.Is(e, ErrDisconnected) {
		wait = r.met(e)
	} else {
		wait = r.waits.next(e)
	}
	if wait == 0 {
		return nil
	}
	r.notice.failed(e, wait)
	if !r.out && time.Since(r.notice.since) >= moment {
		r.out = true
		r.outage(e)
	}
	return r.pause(ctx, wait, e.floor())
}

// pause waits before the next try, unless that is wanted at once.
func (r *reader) pause(ctx context.Context, wait, floor time.Duration) error {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.cut.Store(&cancel)
	err := r.s.link.pause(waiting, wait, floor)
	if errors.Is(context.Cause(waiting), errAgain) {
		return ctx.Err()
	}
	return err
}

// met is how long to wait after another call took our place in the operation: not
// at all the first time, since it may be a call of our own that was lost; then ever
// longer, so that two bridges on one operation do not drive each other in circles.
func (r *reader) met(e *Error) time.Duration {
	if time.Since(r.rival.last) > rivalForgotten+longestWait {
		r.rival.times = 0
		r.rivals.reset()
	}
	r.rival.times++
	r.rival.last = time.Now()
	if r.rival.times == 1 {
		return 0
	}
	return r.rivals.next(e)
}

// again opens the stream anew, without a wait.
func (r *reader) again() {
	if cut := r.cut.Load(); cut != nil {
		(*cut)(errAgain)
	}
}

// suspect finds out whether the connection is dead under a silent stream: calls
// that get no answer replace it.
func (r *reader) suspect(ctx context.Context) {
	r.breaks.Add(1)
	r.broken = true
	r.log.Debug("listener bus was silent, attaching again", "after", silenceLimit)
	for range silentCalls {
		if err := r.s.link.call(ctx, callTime, r.s.probe); err == nil || ctx.Err() != nil || IsDefinite(classify("probe session", err)) {
			return
		}
	}
}
