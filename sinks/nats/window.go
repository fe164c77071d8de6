package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/listener"
)

// Bounds of what is published ahead of its acknowledgements.
const (
	maxWindow      = 512
	maxWindowBytes = 4 << 20
)

// inFlight is a published event whose acknowledgement is awaited.
type inFlight struct {
	subject string
	size    int
	future  jetstream.PubAckFuture
}

// publishWindow publishes events from the front and reads their acknowledgements
// in order. It returns how many are acknowledged without a hole before them. On
// an error it first waits for all that was published: whatever may still be
// stored is stored before the next attempt.
func (p *session) publishWindow(ctx context.Context, events []listener.Event) (int, error) {
	window, publishErr := p.publish(events)
	acked, err := p.await(ctx, window)
	if err == nil {
		return acked, publishErr
	}
	p.routes.forget()
	if tooLarge(err) && p.shrink(ctx, window[acked]) {
		return acked, nil // the caller comes again with this event, now to be cut
	}
	return acked, err
}

// publish sends as many events as may be under way together, at least one. They
// are in flight even when it returns an error about a later one.
func (p *session) publish(events []listener.Event) ([]inFlight, error) {
	var window []inFlight
	var ahead pipeline
	for bytes := 0; len(window) < min(len(events), maxWindow) && bytes < maxWindowBytes; {
		e := &events[len(window)]
		subject := p.subject.Place(e)
		if !ahead.admits(e.PartitionKey(), p.routes.ordered(subject)) {
			break
		}
		msg := message(e, subject, p.limit(subject))
		future, err := p.js.PublishMsgAsync(msg, jetstream.WithRetryAttempts(0), jetstream.WithStallWait(p.ackTimeout))
		if err != nil {
			return window, fmt.Errorf("publish to %s: %w", subject, p.because(err))
		}
		size := wireSize(msg)
		window = append(window, inFlight{subject, size, future})
		bytes += size
	}
	return window, nil
}

func (p *session) await(ctx context.Context, window []inFlight) (acked int, err error) {
	for i, sent := range window {
		ack, ackErr := p.acknowledgement(ctx, sent)
		switch {
		case err != nil:
		case ackErr != nil:
			err = ackErr
		default:
			acked = i + 1
			p.learn(ctx, sent.subject, ack.Stream)
		}
		if ctx.Err() != nil || p.ended() != nil {
			break // nothing more will come
		}
	}
	return acked, err
}

// acknowledgement waits for one answer; the client library bounds the wait.
func (p *session) acknowledgement(ctx context.Context, sent inFlight) (*jetstream.PubAck, error) {
	select {
	case ack := <-sent.future.Ok():
		return ack, nil
	case err := <-sent.future.Err():
		return nil, p.explain(sent.subject, err)
	case <-p.over.Done():
		return nil, fmt.Errorf("publish to %s: %w", sent.subject, p.ended())
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// refusal is a definite answer: the event was not stored and will not be, and
// the connection is as good as before.
type refusal struct {
	subject string
	err     error
}

func (r refusal) Error() string {
	if errors.Is(r.err, jetstream.ErrNoStreamResponse) {
		return fmt.Sprintf("publish to %[1]s: no stream takes this subject: %[2]v; create one, such as: nats stream add spark --subjects 'spark.>', or set jetstream: false", r.subject, r.err)
	}
	return fmt.Sprintf("publish to %s: refused by the stream: %v", r.subject, r.err)
}

func (r refusal) Unwrap() error { return r.err }

func (p *session) explain(subject string, err error) error {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, jetstream.ErrNoStreamResponse), errors.As(err, &api):
		return refusal{subject, err}
	case errors.Is(err, jetstream.ErrAsyncPublishTimeout):
		return fmt.Errorf("publish to %s: no acknowledgement in %v: %w", subject, p.ackTimeout, err)
	}
	return fmt.Errorf("publish to %s: %w", subject, err)
}
