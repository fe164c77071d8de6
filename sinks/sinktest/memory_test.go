package sinktest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// memory is a destination and its sink in one, which keeps every promise, or
// breaks one of them.
type memory struct {
	limit  int
	tamper func(*Message) // changes what arrives
	sloppy bool           // acknowledges what a stopped server did not take
	early  bool           // takes the second of two events first
	deaf   bool           // does not look at the context while frozen

	mu              sync.Mutex
	stopped, frozen bool
	delay           time.Duration
	got             []Message
}

var errDown = errors.New("destination is down")

func (m *memory) Deliver(ctx context.Context, events []listener.Event) (int, error) {
	events = slices.Clone(events)
	if m.early && len(events) > 20 {
		events[10], events[17] = events[17], events[10]
	}
	for i := range events {
		if err := m.take(ctx, &events[i]); err != nil {
			return i, err
		}
	}
	return len(events), nil
}

func (m *memory) take(ctx context.Context, e *listener.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case m.stopped && m.sloppy:
		return nil
	case m.stopped:
		return errDown
	case m.frozen:
		m.mu.Unlock()
		m.hang(ctx)
		m.mu.Lock()
		return errors.Join(ctx.Err(), errDown)
	}
	pause(ctx, m.delay/50)
	m.got = append(m.got, m.message(e))
	return nil
}

// hang is a time-out.
func (m *memory) hang(ctx context.Context) {
	if m.deaf {
		pause(context.WithoutCancel(ctx), 4*time.Second) // longer than the suite allows
		return
	}
	pause(ctx, 200*time.Millisecond)
}

func (m *memory) message(e *listener.Event) Message {
	if m.limit > 0 {
		cut := sinks.Fit(*e, m.limit, func(e *listener.Event) int { return len(e.Payload) + 1000 })
		e = &cut
	}
	out := Message{
		PartitionKey: e.PartitionKey(), ContentType: sinks.ContentType(e), Payload: e.Payload,
		IDs: []string{e.ID}, Attributes: map[string]string{},
	}
	for _, a := range sinks.Attributes(e) {
		out.Attributes[a.Name] = a.Value
	}
	if m.tamper != nil {
		m.tamper(&out)
	}
	return out
}

func (m *memory) Close() error { return nil }

// set makes a harness function of a change.
func (m *memory) set(change func()) func(testing.TB) {
	return func(testing.TB) {
		m.mu.Lock()
		defer m.mu.Unlock()
		change()
	}
}

func (m *memory) harness() Harness {
	return Harness{
		New: func(testing.TB) sinks.Sink { return m },
		Received: func(context.Context) ([]Message, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			return slices.Clone(m.got), nil
		},
		Stop:   m.set(func() { m.stopped = true }),
		Start:  m.set(func() { m.stopped = false }),
		Freeze: m.set(func() { m.frozen = true }),
		Thaw:   m.set(func() { m.frozen = false }),
		Slow:   func(t testing.TB, d time.Duration) { m.set(func() { m.delay = d })(t) },
		Limit:  m.limit,

		CancelWithin: 3 * time.Second,
	}
}
