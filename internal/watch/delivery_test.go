package watch

import (
	"context"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// sinkFunc is a sink that is one func.
type sinkFunc func(ctx context.Context, events []listener.Event) (int, error)

func (f sinkFunc) Deliver(ctx context.Context, events []listener.Event) (int, error) {
	return f(ctx, events)
}
func (sinkFunc) Close() error { return nil }

func TestDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		acks, fails := 1, true
		d := WatchSink(sinkFunc(func(ctx context.Context, events []listener.Event) (int, error) {
			time.Sleep(2 * time.Second)
			if ctx.Err() != nil {
				return 0, ctx.Err()
			}
			if fails {
				return acks, errNo
			}
			return len(events), nil
		}))
		events := make([]listener.Event, 2)
		if n, err := d.Deliver(t.Context(), events); n != 1 || err == nil {
			t.Errorf("%d, %v", n, err)
		}
		if d.Failures()[ReasonOther] != 1 {
			t.Errorf("failures %v", d.Failures())
		}
		fails = false
		if n, err := d.Deliver(t.Context(), events[1:]); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if _, err := d.Deliver(stopped, nil); err == nil {
			t.Error("no error")
		}
		took := d.Took()
		if took.Count != 2 || took.Sum != 4 || d.Failures()[ReasonOther] != 1 {
			t.Errorf("took %+v, failures %v", took, d.Failures())
		}
	})
}

func TestReasons(t *testing.T) {
	for want, errs := range map[Reason][]error{
		ReasonPermanent:  {sinks.Permanent(errNo)},
		ReasonThrottled:  {&sinks.RetryAfterError{After: time.Second, Err: errNo}},
		ReasonTimeout:    {context.DeadlineExceeded, &net.OpError{Op: "read", Err: context.DeadlineExceeded}},
		ReasonConnection: {io.EOF, syscall.ECONNREFUSED, &net.OpError{Op: "dial", Err: errNo}},
		ReasonOther:      {errNo},
	} {
		for _, err := range errs {
			if got := reasonOf(fmt.Errorf("deliver: %w", err)); got != want {
				t.Errorf("%v is %s, want %s", err, got, want)
			}
		}
	}
}
