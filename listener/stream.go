package listener

import "context"

// The event types of Spark's listener bus (StreamingQueryEventType). Spark has
// none for started: it says that only in the answer to a start.
const (
	TypeProgress   int32 = 1
	TypeTerminated int32 = 2
	TypeIdle       int32 = 3
)

// Raw is one event as the listener bus sent it.
type Raw struct {
	Type int32  // Spark's StreamingQueryEventType
	JSON []byte // event_json, untouched
	// ResponseID names the response that carried the event; the same after a
	// reattach. Index is the event's place in that response.
	ResponseID string
	Index      int
}

// Delivery is what one read of a Stream brought: events in Spark's order, and
// the position after them. A delivery without events still moves the position.
type Delivery struct {
	Events []Raw
	// Position is the id of the last response of the delivery.
	Position string
}

// Stream is an open listener bus of one session. Its methods are called by one
// goroutine at a time.
type Stream interface {
	// Next blocks until something has arrived and returns all that has, bounded
	// in number and bytes. When ctx ends first it returns the error of ctx, loses
	// nothing, and may be called again. Any other error means that this stream is
	// over; what it means for the session is told by the error.
	Next(ctx context.Context) (Delivery, error)

	// Done says that everything up to and including d is kept, so that Spark may
	// forget it. It makes the position durable before it lets the server forget,
	// and may put both off to do it for several deliveries at once.
	Done(ctx context.Context, d Delivery) error

	// Finish asks Spark to end the bus, so that its slot is free for another client.
	// After it Next returns what Spark still had, and then io.EOF; each delivery is
	// confirmed by Done as before. ctx bounds the farewell.
	Finish(ctx context.Context) error

	// Close lets go of the stream in this process and waits for its goroutines. What
	// was not finished stays open at the server, to be resumed by a later process
	// within the time that Spark waits for one (five minutes by default). The last
	// position given to Done is durable when Close returns without an error.
	Close() error
}
