package nats

import (
	"context"
	"fmt"

	"sparkbridge/listener"
)

// publishAndFlush publishes a window to plain NATS. The server answers only the
// flush behind it, when it has read everything before; so the window counts as a
// whole or not at all. A denied subject shows as an error before that answer.
func (p *session) publishAndFlush(ctx context.Context, events []listener.Event) (int, error) {
	before := p.conn.LastError()
	events = events[:min(len(events), maxWindow)]
	for i := range events {
		subject := p.subject.Place(&events[i])
		msg, err := p.form.message(&events[i], subject, int(p.conn.MaxPayload()))
		if err != nil && i > 0 {
			events = events[:i] // it is the first next time
			break
		}
		if err != nil {
			return 0, err
		}
		if err := p.conn.PublishMsg(msg); err != nil {
			return 0, fmt.Errorf("publish to %s: %w", subject, p.because(err))
		}
	}
	ctx, cancel := context.WithTimeout(ctx, p.ackTimeout) // from here: to cut large events takes its time
	defer cancel()
	if err := p.conn.FlushWithContext(ctx); err != nil {
		return 0, fmt.Errorf("wait for the server to read %d events: %w", len(events), p.because(err))
	}
	if err := p.conn.LastError(); err != before { //nolint:errorlint // whether it is another one, not which
		return 0, fmt.Errorf("publish %d events: %w", len(events), err)
	}
	return len(events), nil
}

// because prefers the reason why the session ended to what a call noticed of it.
func (p *session) because(err error) error {
	if reason := p.ended(); reason != nil {
		return reason
	}
	return err
}
