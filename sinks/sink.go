// Package sinks carries admitted events to their destinations. A Worker drives
// one Sink at its own pace: it reads the journal by sequence, delivers with
// endless backoff, and moves the cursor only over what the destination has
// acknowledged. Events of one query keep their order; a repeat has the same id.
package sinks

import (
	"context"

	"sparkbridge/listener"
)

// Sink is one destination. A Worker calls it from one goroutine.
type Sink interface {
	// Deliver sends the events in their order and waits until the destination has
	// acknowledged them. It returns how many events from the front are
	// acknowledged; err is nil if that is all of them, and only then. Whatever was not
	// acknowledged is delivered again, so a destination may see an event twice,
	// with the same id, but never out of order within its query. When ctx ends,
	// Deliver returns soon with the error of ctx.
	Deliver(ctx context.Context, events []listener.Event) (acked int, err error)

	// Close lets go of the destination. No Deliver runs beside or after it.
	Close() error
}
