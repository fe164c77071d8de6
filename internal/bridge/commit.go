package bridge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

const (
	// maxPayload is what one event may take in the journal; longer texts are cut.
	maxPayload = 60 << 20
	// lastWrite bounds the write to the journal that is under way at the end.
	lastWrite = 2 * time.Second
	// unwritable is how long the journal may refuse events until the bus is given up,
	// so that the driver does not fill with what nobody takes.
	unwritable = time.Minute
)

// errUnwritable says that the journal has refused events for too long.
var errUnwritable = errors.New("the journal cannot be written")

// commit makes events durable. While the journal cannot be written nothing is read,
// and Spark keeps the events; after a minute it is given up with errUnwritable. A
// write that is under way when ctx ends is brought to its end.
func (s *source) commit(ctx context.Context, events []listener.Event) error {
	ctx, cancel := outlive(ctx, lastWrite)
	defer cancel()
	records := make([][]byte, len(events))
	for i, e := range events {
		records[i] = listener.EncodeRecord(sinks.Fit(e, maxPayload, func(e *listener.Event) int { return len(e.Payload) }))
	}
	began := time.Now()
	for wait := newPatience(100*time.Millisecond, 5*time.Second); ; {
		err := s.room(ctx)
		if err == nil {
			_, err = s.journal.Append(ctx, records...)
		}
		if err == nil {
			wait.over(s.log)
			return nil
		}
		if ctx.Err() != nil || errors.Is(err, journal.ErrGone) {
			return fmt.Errorf("append to journal: %w", err)
		}
		wait.failed(s.log, err)
		if time.Since(began) >= unwritable {
			return fmt.Errorf("append to journal: %w: %w", errUnwritable, err)
		}
		if err := pause(ctx, wait.next()); err != nil {
			return fmt.Errorf("append to journal: %w", err)
		}
	}
}

// awaitJournal waits until the journal takes events again, and then decides anew
// from what it holds: the marks had got ahead of it.
func (s *source) awaitJournal(ctx context.Context) error {
	for {
		err := s.room(ctx)
		if err == nil {
			_, err = s.states.record(ctx, busLost, "the journal could not be written; the bus was given up so that spark does not fill")
		}
		if err == nil {
			break
		}
		if !waited(ctx, 5*time.Second) {
			return nil
		}
	}
	if err := s.remember(ctx); err != nil {
		return broken(err)
	}
	s.admission.Load().Follow(s.named())
	return nil
}
