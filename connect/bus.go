package connect

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"sparkbridge/listener"
)

// BusOptions configure a Bus. The zero value is ready to use.
type BusOptions struct {
	// Store keeps the resume point; nil keeps it in memory. One store belongs to one
	// bus.
	Store ResumeStore
	// AddTimeout is how long a live server may be silent before the bus counts as
	// taken; 0 means 30 seconds. A fresh driver takes a second to answer.
	AddTimeout time.Duration
	// Keep leaves a listener that was just being added on the server when OpenBus is
	// cancelled, for a process that reads on within five minutes. Otherwise it is
	// removed, so that it is in nobody's way.
	Keep bool
	// Outage is told the failure when the connection to an open bus is lost for more
	// than a moment, and nil when the bus is read on. It is called by the goroutine
	// that reads, and may be nil.
	Outage func(error)
	// Reattached is told each time that a stream goes on where the one before ended:
	// broken says that this one did not end cleanly, as Spark ends each after two
	// minutes. It is called by the goroutine that reads, and may be nil.
	Reattached func(broken bool)
	// Log takes what happens to the bus; nil uses the client's.
	Log *slog.Logger
}

const defaultAddTimeout = 30 * time.Second

func (o BusOptions) withDefaults(s *Session) BusOptions {
	if o.Store == nil {
		o.Store = new(MemoryStore)
	}
	if o.AddTimeout <= 0 {
		o.AddTimeout = defaultAddTimeout
	}
	if o.Outage == nil {
		o.Outage = func(error) {}
	}
	if o.Reattached == nil {
		o.Reattached = func(bool) {}
	}
	if o.Log == nil {
		o.Log = s.log
	}
	return o
}

// The position is stored, and what is before it released, after so much has been
// done since the last time. An idle bus is not left behind for longer either.
const (
	saveEvery       = time.Second
	saveAfterEvents = 256
	saveAfterBytes  = 1 << 20
)

// Bus is the listener bus of a session, held by this client. Next, Done, Finish
// and Close are called by one goroutine at a time.
type Bus struct {
	s       *Session
	o       BusOptions
	resumed bool
	queue   *queue
	reader  *reader
	cancel  context.CancelFunc // of the reader
	forgets *forgets

	point  ResumePoint // as it is stored, unless dirty
	dirty  bool        // the stored point lacks something beside the position
	handed string      // the last position that Next has returned
	done   string      // the last position that is kept
	events int         // done since the last save
	bytes  int
	saved  time.Time

	over error // what Next returns from now on
}

var _ listener.Stream = (*Bus)(nil)

// errClosed is what a closed bus answers.
var errClosed = errors.New("listener bus is closed")

// Resumed says whether the bus reads on in an operation of an earlier one, so that
// nothing was lost between the two.
func (b *Bus) Resumed() bool { return b.resumed }

// OperationID names the operation on the server.
func (b *Bus) OperationID() string { return b.point.OperationID }

// Next returns what has arrived, at most 256 events or 4 MiB unless a single
// response holds more. While it waits, a position that is done is stored and
// released within a second.
//
// After Finish it returns what Spark had still put on the bus, and then io.EOF; so
// does a bus that reads on in an operation which an earlier one has finished.
// Otherwise the end of the stream is an *Error: ErrBusRemoved, ErrSessionClosed,
// ErrSessionNotFound, ErrSessionChanged, ErrOperationNotFound,
// ErrOperationAbandoned, ErrPositionLost, ErrTooLarge, ErrUnauthenticated.
func (b *Bus) Next(ctx context.Context) (listener.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return listener.Delivery{}, err
		}
		if b.over != nil {
			return listener.Delivery{}, b.over
		}
		d, err := b.queue.pull()
		if err != nil {
			return listener.Delivery{}, b.conclude(err)
		}
		if len(d.Events) > 0 || d.Position != "" {
			b.handed = d.Position
			return d, nil
		}
		b.wait(ctx)
	}
}

// wait ends when something may have arrived or ctx has ended, and saves a position
// that has waited long enough.
func (b *Bus) wait(ctx context.Context) {
	var due <-chan time.Time
	if b.unsaved() {
		t := time.NewTimer(time.Until(b.saved.Add(saveEvery)))
		defer t.Stop()
		due = t.C
	}
	select {
	case <-b.queue.more:
	case <-ctx.Done():
	case <-due:
		if err := b.flush(); err != nil {
			b.o.Log.Warn("cannot store the position on the listener bus, trying again", "err", err)
		}
	}
}

// conclude ends the stream. An operation that is complete and has been kept to its
// end is of no use to a later bus.
func (b *Bus) conclude(err error) error {
	b.over = err
	complete := errors.Is(err, ErrBusRemoved) || errors.Is(err, io.EOF)
	if complete && b.done == b.handed {
		b.forget()
		return err
	}
	if ferr := b.flush(); ferr != nil {
		b.o.Log.Warn("cannot store the last position on the listener bus", "err", ferr)
	}
	return err
}

// forget clears the resume point and lets the server drop the operation.
func (b *Bus) forget() {
	if err := save(b.o.Store, ResumePoint{}); err != nil {
		b.o.Log.Warn("cannot clear the resume point", "err", err)
		return
	}
	b.forgets.all()
}

// Done says that everything up to and including d is kept. The position is stored
// and then released on the server once 256 events, 1 MiB or a second have come
// together. An error means that it could not be stored: nothing was released, the
// stream goes on, and a later Done or a second of silence tries again.
func (b *Bus) Done(_ context.Context, d listener.Delivery) error {
	if d.Position == "" {
		return nil
	}
	b.done = d.Position
	b.events += len(d.Events)
	for _, e := range d.Events {
		b.bytes += len(e.JSON)
	}
	if b.events < saveAfterEvents && b.bytes < saveAfterBytes && time.Since(b.saved) < saveEvery {
		return nil
	}
	return b.flush()
}

func (b *Bus) unsaved() bool { return b.dirty || b.done != b.point.LastResponseID }

// flush stores the position that is done, and only then lets the server forget
// what is before it.
func (b *Bus) flush() error {
	if !b.unsaved() {
		return nil
	}
	b.saved, b.events, b.bytes = time.Now(), 0, 0
	p := b.point
	p.LastResponseID, p.ServerSessionID = b.done, b.s.ServerSideID()
	if err := save(b.o.Store, p); err != nil {
		return err
	}
	b.point, b.dirty = p, false
	if b.done != "" {
		b.forgets.until(b.done)
	}
	return nil
}

// Finish removes the listener on the server: Next returns the rest, which must be
// done like all before, and then io.EOF. ctx bounds the removal; an error of ctx
// says that the listener may still be there. A bus that has ended otherwise is
// removed where it may still be held by our listener.
func (b *Bus) Finish(ctx context.Context) error {
	if b.over != nil && !errors.Is(b.over, ErrOperationAbandoned) && !errors.Is(b.over, ErrPositionLost) && !errors.Is(b.over, ErrTooLarge) {
		return nil
	}
	saveErr := b.flush()
	b.reader.removing.Store(true)
	err := errors.Join(saveErr, b.remove(ctx))
	if err == nil && errors.Is(b.over, ErrTooLarge) {
		b.forget() // reading on would meet the same message again
	}
	return err
}

// remove removes our listener once, and notes that it has gone: what holds the bus
// after that is somebody else's.
func (b *Bus) remove(ctx context.Context) error {
	if b.point.Removed {
		return nil
	}
	if err := b.s.removeOwn(ctx, b.o, b.point, b.reader.completed); err != nil {
		return err
	}
	b.point.Removed, b.dirty = true, true
	return b.flush()
}

// farewell bounds how long Close waits for the server to take a last release.
const farewell = 2 * time.Second

// Close stores the last position and lets go of the bus in this process. What Next
// has not returned stays with the server: the next bus of the session begins with
// it, within five minutes.
func (b *Bus) Close() error {
	var err error
	if b.over == nil {
		if end := b.queue.ended(); end != nil && b.queue.waiting() == 0 {
			_ = b.conclude(end) // the end of the stream is no failure of Close
		} else {
			err = b.flush()
		}
		b.over = errClosed
	}
	b.cancel()
	<-b.reader.done
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	b.forgets.close(ctx)
	return err
}
