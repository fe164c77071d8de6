package connect

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/stats"

	"sparkbridge/connect/sparkpb"
)

const (
	// A call that is answered at once or not at all gets this long, and more when a
	// slow server has used it up.
	callTime    = 10 * time.Second
	maxCallTime = time.Minute
	// So many calls in a row without any sign of life condemn a connection.
	silentCalls = 2
	// Until then an early try is not made, so that a server which accepts and drops
	// connections is not hammered.
	plainWait = 2 * time.Second
)

// errUnanswered is why a call ended that took too long.
var errUnanswered = errors.New("no answer in time")

// link is the gRPC connection that the sessions on one server share. It is
// replaced when it is frozen: when it swallows calls without a sign of life.
type link struct {
	key  linkKey
	refs int // guarded by Client.mu
	dial func(*wire) (*grpc.ClientConn, error)
	log  *slog.Logger

	mu       sync.Mutex
	wire     *wire
	closed   bool
	answered chan struct{} // closed when a call is answered, nil while nobody waits for that
}

// wire is one gRPC connection. It hears of everything that arrives on it.
type wire struct {
	conn   *grpc.ClientConn
	spark  sparkpb.SparkConnectServiceClient
	silent atomic.Int32 // calls in a row that brought no sign of life
}

func (w *wire) HandleRPC(_ context.Context, s stats.RPCStats) {
	switch s.(type) {
	case *stats.InHeader, *stats.InPayload, *stats.InTrailer:
		w.silent.Store(0)
	}
}

func (*wire) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (*wire) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (*wire) HandleConn(context.Context, stats.ConnStats)                       {}

func (l *link) open() error {
	w := new(wire)
	conn, err := l.dial(w)
	if err != nil {
		return err
	}
	w.conn, w.spark = conn, sparkpb.NewSparkConnectServiceClient(conn)
	l.wire = w
	return nil
}

func (l *link) current() *wire {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wire
}

// call runs one try of a call that must be answered within bound.
func (l *link) call(ctx context.Context, bound time.Duration, do func(context.Context, sparkpb.SparkConnectServiceClient) error) error {
	w, began := l.current(), time.Now()
	bounded, cancel := context.WithTimeoutCause(ctx, bound, errUnanswered)
	defer cancel()
	err := do(bounded, w.spark)
	// Who asks may have less patience than we; a call that was cut short by that tells
	// as much, if a server that lives had the time to answer it.
	if err != nil && errors.Is(bounded.Err(), context.DeadlineExceeded) && time.Since(began) >= callTime/2 {
		l.unanswered(w)
	}
	if err == nil {
		l.wake()
	}
	return err
}

// wake ends the pauses of others: the server answers.
func (l *link) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answered != nil {
		close(l.answered)
		l.answered = nil
	}
}

// answer returns a channel that is closed when the next call is answered.
func (l *link) answer() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.answered == nil {
		l.answered = make(chan struct{})
	}
	return l.answered
}

// unanswered counts a call that got no answer, and replaces the connection when
// nothing at all came back on it. What else is open on it breaks, and goes on over
// the new one.
func (l *link) unanswered(w *wire) {
	if w.silent.Add(1) < silentCalls {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wire != w || l.closed {
		return
	}
	if err := l.open(); err != nil {
		l.log.Error("cannot replace the silent connection", "err", err)
		return
	}
	l.log.Warn("replaced a connection that swallows calls", "address", l.key.address)
	_ = w.conn.Close() // it only fails when it is closed already
}

// pause waits before another try: floor in any case, and then until d is over, the
// server can be connected to again, or it has answered another call, whichever is first.
// gRPC connects on its own, but a call made while it pauses itself is refused with the
// last failure, as if it were made now.
func (l *link) pause(ctx context.Context, d, floor time.Duration) error {
	patience := min(d, max(floor, plainWait))
	if err := sleep(ctx, patience); err != nil {
		return err
	}
	conn := l.current().conn
	if conn.GetState() == connectivity.Ready {
		return sleepUnless(ctx, l.answer(), d-patience)
	}
	// Even a short wait leaves gRPC a moment to connect.
	rest, cancel := context.WithTimeout(ctx, max(d-patience, firstWait))
	defer cancel()
	conn.ResetConnectBackoff()
	for s := conn.GetState(); s != connectivity.Ready && s != connectivity.Shutdown; s = conn.GetState() {
		conn.Connect()
		if !conn.WaitForStateChange(rest, s) {
			break
		}
	}
	return ctx.Err()
}

// sleep waits for d or the end of ctx.
func sleep(ctx context.Context, d time.Duration) error { return sleepUnless(ctx, nil, d) }

// sleepUnless is a sleep that ends at once when enough is closed.
func sleepUnless(ctx context.Context, enough <-chan struct{}, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err()
	case <-enough:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *link) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return l.wire.conn.Close()
}
