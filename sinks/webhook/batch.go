package webhook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// batchContentType is the media type of several events in one JSON array, from
// the HTTP binding of CloudEvents.
const batchContentType = "application/cloudevents-batch+json; charset=utf-8"

// Batch puts several events into one request. The zero value does not.
type Batch struct {
	// MaxEvents is how many at most.
	MaxEvents int `yaml:"max_events" example:"100" doc:"Put up to so many events into one request, as application/cloudevents-batch+json."`
	// MaxWait is how long events gather behind a request that is not full.
	MaxWait time.Duration `yaml:"max_wait" example:"1s" doc:"Let events gather for so long between two requests that are not full; 0s: send what is there. A crash in this time repeats the last request."`
}

// largestBatch is how many events a worker hands over at most, and largeBatch how many
// bytes of them need not wait for more; longestWait bounds how long the worker is away.
const (
	largestBatch = 512
	largeBatch   = 1 << 20
	longestWait  = 30 * time.Second
)

func (b Batch) validate() error {
	switch {
	case b.MaxEvents < 0 || b.MaxEvents > largestBatch:
		return fmt.Errorf("batch.max_events: %d is none of 1 to %d", b.MaxEvents, largestBatch)
	case b.MaxEvents == 0 && b.MaxWait != 0:
		return errors.New("batch.max_events: is missing; set it to how many events go into one request")
	case b.MaxWait < 0 || b.MaxWait > longestWait:
		return fmt.Errorf("batch.max_wait: %s is not between 0s and %s", b.MaxWait, longestWait)
	}
	return nil
}

// deliverBatches posts the events in requests of several, one request at a time.
func (s *Sink) deliverBatches(ctx context.Context, events []listener.Event) (acked int, err error) {
	gathers := s.gathers(events)
	for acked < len(events) && err == nil {
		batch := events[acked:min(len(events), acked+s.batch.MaxEvents)]
		var n int
		n, err = s.postBatch(ctx, batch)
		acked += n
	}
	s.noteFailed(events, acked, err)
	if err == nil && gathers {
		gather(ctx, s.batch.MaxWait)
	}
	return acked, err
}

// gathers says whether to wait for more behind these events: not if the last request
// is full, nor if there are so many that more lie ready. Nor if they come again, by a
// replay or a retry, or after a failure: the worker may be trying single events then, to
// see which is to blame, and must not wait after each.
func (s *Sink) gathers(events []listener.Event) bool {
	first, bytes := &events[0], 0
	for i := range events {
		bytes += len(events[i].Payload)
	}
	again := first.Replay != "" || s.failing || s.again[first.Sequence]
	return !again && len(events)%s.batch.MaxEvents != 0 && len(events) < largestBatch && bytes < largeBatch
}

// noteFailed remembers which events have failed and are to come again.
func (s *Sink) noteFailed(events []listener.Event, acked int, err error) {
	s.failing = err != nil
	if len(s.again) > maxRemembered {
		clear(s.again)
	}
	for i := range events {
		if i < acked {
			delete(s.again, events[i].Sequence)
		} else {
			s.again[events[i].Sequence] = true
		}
	}
}

// gather lets the journal collect events. It delays only that the last request
// counts as acknowledged: one that waits for more before it sends would wait for
// events that come after it has returned.
func gather(ctx context.Context, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// postBatch posts events in one request. Where that is refused for what is in it,
// it is halved until the event is found that is to blame.
func (s *Sink) postBatch(ctx context.Context, events []listener.Event) (acked int, err error) {
	err = s.post(ctx, batchRequest(events))
	if err == nil {
		return len(events), nil
	}
	if !sinks.IsPermanent(err) || len(events) == 1 {
		return 0, err
	}
	half := len(events) / 2
	if acked, err = s.postBatch(ctx, events[:half]); err != nil {
		return acked, err
	}
	acked, err = s.postBatch(ctx, events[half:])
	return half + acked, err
}

// batchRequest makes a request whose id is that of the same events at each try.
func batchRequest(events []listener.Event) request {
	sum := sha256.New()
	body := []byte{'['}
	for i := range events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, sinks.Structured(&events[i])...)
		sum.Write([]byte(events[i].ID + "\n"))
	}
	return request{id: "batch-" + hex.EncodeToString(sum.Sum(nil)[:16]), contentType: batchContentType, body: append(body, ']')}
}
