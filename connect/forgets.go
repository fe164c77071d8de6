package connect

import (
	"context"
	"log/slog"
	"sync"

	"sparkbridge/connect/sparkpb"
)

// forgets tells the server what it may forget of one operation, in the background
// and one call at a time; a newer position replaces one that waits. A call that
// fails is not repeated: the next one says more.
type forgets struct {
	s    *Session
	op   string
	log  *slog.Logger
	wake chan struct{}
	done chan struct{}
	stop context.CancelFunc

	mu     sync.Mutex
	next   *sparkpb.ReleaseExecuteRequest
	closed bool
}

func newForgets(s *Session, op string, log *slog.Logger) *forgets {
	ctx, cancel := context.WithCancel(context.Background())
	f := &forgets{s: s, op: op, log: log, wake: make(chan struct{}, 1), done: make(chan struct{}), stop: cancel}
	go f.run(ctx)
	return f
}

// until lets the server forget the responses before id, which must be a stored
// resume point.
func (f *forgets) until(id string) {
	r := f.s.releaseRequest(f.op)
	r.Release = &sparkpb.ReleaseExecuteRequest_ReleaseUntil_{ReleaseUntil: &sparkpb.ReleaseExecuteRequest_ReleaseUntil{ResponseId: id}}
	f.put(r)
}

// all lets the server forget the operation.
func (f *forgets) all() { f.put(f.s.releaseRequest(f.op)) }

func (f *forgets) put(r *sparkpb.ReleaseExecuteRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = r
	signal(f.wake)
}

func (f *forgets) take() (r *sparkpb.ReleaseExecuteRequest, closed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r, f.next = f.next, nil
	return r, f.closed
}

func (f *forgets) run(ctx context.Context) {
	defer close(f.done)
	for range f.wake {
		r, closed := f.take()
		if r != nil {
			f.send(ctx, r)
		}
		if closed || ctx.Err() != nil {
			return
		}
	}
}

func (f *forgets) send(ctx context.Context, r *sparkpb.ReleaseExecuteRequest) {
	err := f.s.link.call(ctx, callTime, func(ctx context.Context, spark sparkpb.SparkConnectServiceClient) error {
		return f.s.release(ctx, spark, r)
	})
	if err != nil && ctx.Err() == nil {
		f.log.Debug("release was not answered", "err", err)
	}
}

// close sends what is left, until ctx ends.
func (f *forgets) close(ctx context.Context) {
	f.mu.Lock()
	f.closed = true
	f.mu.Unlock()
	signal(f.wake)
	select {
	case <-f.done:
	case <-ctx.Done():
	}
	f.stop()
	<-f.done
}
