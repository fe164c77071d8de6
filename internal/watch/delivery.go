package watch

import (
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// Reason is why a delivery failed, as far as it can be told for every kind of sink.
type Reason string

// The reasons of failed deliveries.
const (
	ReasonPermanent  Reason = "permanent"  // an event was refused for what it is
	ReasonThrottled  Reason = "throttled"  // the destination asked to come later
	ReasonTimeout    Reason = "timeout"    // it did not answer in time
	ReasonConnection Reason = "connection" // it could not be reached, or the connection broke
	ReasonOther      Reason = "other"      // it answered with an error
)

// Reasons are all reasons.
var Reasons = []Reason{ReasonPermanent, ReasonThrottled, ReasonTimeout, ReasonConnection, ReasonOther}

// Deliveries is a sink that delivers by another one and remembers how that went.
type Deliveries struct {
	sinks.Sink
	took Histogram

	mu       sync.Mutex
	failures map[Reason]uint64
}

var _ sinks.Sink = (*Deliveries)(nil)

// WatchSink returns a sink that delivers by s.
func WatchSink(s sinks.Sink) *Deliveries {
	return &Deliveries{Sink: s, failures: map[Reason]uint64{}}
}

// Deliver delivers by the sink inside.
func (d *Deliveries) Deliver(ctx context.Context, events []listener.Event) (acked int, err error) {
	began := time.Now()
	acked, err = d.Sink.Deliver(ctx, events)
	if err != nil && ctx.Err() != nil {
		return acked, err // stopping is no failure
	}
	d.took.Add(time.Since(began))
	if err != nil {
		d.failed(reasonOf(err))
	}
	return acked, err
}

func (d *Deliveries) failed(why Reason) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failures[why]++
}

// Failures counts the deliveries that failed.
func (d *Deliveries) Failures() map[Reason]uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.failures)
}

// Took says how long deliveries took, those that failed too.
func (d *Deliveries) Took() Durations { return d.took.Durations() }

func reasonOf(err error) Reason {
	var later *sinks.RetryAfterError
	var network net.Error
	var operation *net.OpError
	switch {
	case sinks.IsPermanent(err):
		return ReasonPermanent
	case errors.As(err, &later):
		return ReasonThrottled
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return ReasonTimeout
	case errors.As(err, &operation), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), errors.Is(err, net.ErrClosed):
		return ReasonConnection
	default:
		return ReasonOther
	}
}
