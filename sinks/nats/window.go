package nats

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// Bounds of what is published ahead of its acknowledgements.
const (
	maxWindow      = 512
	maxWindowBytes = 4 << 20
)

// inFlight is an event to be published, and then one whose acknowledgement is
// awaited.
type inFlight struct {
	msg    *nats.Msg
	size   int
	future jetstream.PubAckFuture
}

// publishWindow publishes events from the front and reads their acknowledgements
// in order. It returns how many are acknowledged without a hole before them. On
// an error it first waits for all that was published: whatever may still be
// stored is stored before the next attempt.
func (p *session) publishWindow(ctx context.Context, events []listener.Event) (int, error) {
	messages, err := p.window(events)
	if err != nil {
		return 0, err
	}
	window, publishErr := p.publish(messages)
	acked, err := p.await(ctx, window)
	if err == nil {
		return acked, publishErr
	}
	p.routes.forget()
	if errors.Is(err, jetstream.ErrNoStreamResponse) && p.mayMake() {
		return acked, p.makeStream(ctx, window[acked].msg.Subject) // then the caller comes again with this event
	}
	switch {
	case tooLarge(err) && p.shrink(ctx, window[acked]):
		return acked, nil // the caller comes again with this event, now to be cut
	case tooLarge(err):
		return acked, sinks.Permanent(err)
	}
	return acked, err
}

// window makes messages of as many events from the front as may be under way
// together, at least one. An error is the refusal of the first.
func (p *session) window(events []listener.Event) ([]inFlight, error) {
	window := make([]inFlight, 0, min(len(events), maxWindow))
	var ahead pipeline
	for bytes := 0; len(window) < cap(window) && bytes < maxWindowBytes; {
		e := &events[len(window)]
		subject := p.subject.Place(e)
		if !ahead.admits(e.PartitionKey(), p.routes.ordered(subject)) {
			break
		}
		msg, err := p.form.message(e, subject, p.limit(subject))
		if err != nil && len(window) > 0 {
			break // it is the first next time
		}
		if err != nil {
			return nil, err
		}
		size := wireSize(msg)
		window = append(window, inFlight{msg: msg, size: size})
		bytes += size
	}
	return window, nil
}

// publish sends the messages and returns those that are now in flight, which
// are fewer than all when it returns an error.
func (p *session) publish(window []inFlight) ([]inFlight, error) {
	for i := range window {
		var err error
		window[i].future, err = p.js.PublishMsgAsync(window[i].msg, jetstream.WithRetryAttempts(0), jetstream.WithStallWait(p.ackTimeout))
		if err != nil {
			return window[:i], fmt.Errorf("publish to %s: %w", window[i].msg.Subject, p.because(err))
		}
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
			p.learn(ctx, sent.msg.Subject, ack.Stream)
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
		return nil, p.explain(sent.msg.Subject, err)
	case <-p.over.Done():
		return nil, fmt.Errorf("publish to %s: %w", sent.msg.Subject, p.ended())
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
