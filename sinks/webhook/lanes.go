package webhook

import (
	"context"

	"golang.org/x/sync/errgroup"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// maxLanes is how many queries are served at the same time.
const maxLanes = 8

// lane is the events of one query, by their places in the batch.
type lane []int

// deliverLanes posts the events, those of one query in order and one at a time.
// After a failure no further request is begun, except where it is the refusal of
// one event: that stops its own query only. What was acknowledged behind the
// failed event is remembered, and skipped when the rest is delivered again.
func (s *Sink) deliverLanes(ctx context.Context, events []listener.Event) (int, error) {
	acked := make([]bool, len(events))
	refused := make([]error, len(events))
	group, stopped := errgroup.WithContext(ctx)
	group.SetLimit(maxLanes)
	for _, l := range lanes(events) {
		group.Go(func() error { return s.serve(ctx, stopped, l, events, acked, refused) })
	}
	err := group.Wait()
	front := s.settle(events, acked)
	// A refusal is said of the first event that is not acknowledged, or not yet.
	if front < len(events) && refused[front] != nil {
		err = refused[front]
	}
	return front, err
}

// lanes sorts the events by what must stay in order.
func lanes(events []listener.Event) []lane {
	places := map[string]int{}
	var all []lane
	for i := range events {
		key := events[i].PartitionKey()
		place, known := places[key]
		if !known {
			place = len(all)
			places[key] = place
			all = append(all, nil)
		}
		all[place] = append(all[place], i)
	}
	return all
}

// serve posts one lane until it is done or another one has failed. A request
// that is under way then is not broken off, only ctx does that: it may well
// succeed, and breaking it off would make a repeat.
func (s *Sink) serve(ctx, stopped context.Context, l lane, events []listener.Event, acked []bool, refused []error) error {
	for _, i := range l {
		e := &events[i]
		if s.early[earlyKey(e)] {
			acked[i] = true
			continue
		}
		if err := stopped.Err(); err != nil {
			return err
		}
		if err := s.post(ctx, s.eventRequest(e)); sinks.IsPermanent(err) {
			refused[i] = err
			return nil
		} else if err != nil {
			return err
		}
		acked[i] = true
		s.log.Debug("event delivered", "id", e.ID, "sequence", e.Sequence)
	}
	return nil
}

// maxRemembered bounds what is remembered of events; forgetting only makes a repeat, or
// a wait.
const maxRemembered = 16384

// earlyKey tells a replay of an event from the event.
func earlyKey(e *listener.Event) string { return e.ID + "\x00" + e.Replay }

// settle counts the acknowledged events at the front, and remembers those behind. The
// next batch may hold fewer of them: they are remembered until they are at the front.
func (s *Sink) settle(events []listener.Event, acked []bool) int {
	front := 0
	for front < len(acked) && acked[front] {
		front++
	}
	for i := range front {
		delete(s.early, earlyKey(&events[i]))
	}
	if len(s.early) > maxRemembered {
		clear(s.early)
	}
	for i := front; i < len(acked); i++ {
		if acked[i] {
			s.early[earlyKey(&events[i])] = true
		}
	}
	return front
}
