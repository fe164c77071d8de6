package kafka

import (
	"context"

	"github.com/segmentio/kafka-go"

	"sparkbridge/listener"
)

// maxRound bounds the messages of one round.
const maxRound = 1024

// round returns messages of the first events, as many as may go together, at
// least one: what falls into one topic fits into one batch, even if all of it
// falls into the same partition.
func (s *Sink) round(ctx context.Context, events []listener.Event) ([]kafka.Message, error) {
	round := make([]kafka.Message, 0, min(len(events), maxRound))
	bytes := make(map[string]int)
	for i := range events[:cap(round)] {
		topic := s.topic.Place(&events[i])
		limit, err := s.limit(ctx, topic)
		if err != nil && i > 0 {
			return round, nil // the events before can go; this one is then the first
		}
		if err != nil {
			return nil, s.explain(topic, err)
		}
		msg, err := s.form.message(&events[i], topic, limit)
		if err != nil && i > 0 {
			return round, nil
		}
		if err != nil {
			return nil, err
		}
		if bytes[topic] > 0 && bytes[topic]+recordSize(&msg) > limit {
			return round, nil
		}
		bytes[topic] += recordSize(&msg)
		round = append(round, msg)
	}
	return round, nil
}

// alone says that a round has one message for a topic.
func alone(round []kafka.Message, topic string) bool {
	n := 0
	for i := range round {
		if round[i].Topic == topic {
			n++
		}
	}
	return n == 1
}

// Upper bounds of what the record batch format (magic 2) adds to the bytes of
// keys, values and headers: fixed fields, and lengths of up to five bytes each.
const (
	batchOverhead  = 61
	recordOverhead = 40
	headerOverhead = 10
)

// recordSize is the most that msg can take in a batch.
func recordSize(msg *kafka.Message) int {
	size := recordOverhead + len(msg.Key) + len(msg.Value)
	for _, h := range msg.Headers {
		size += headerOverhead + len(h.Key) + len(h.Value)
	}
	return size
}
