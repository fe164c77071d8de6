package kafka

import (
	"context"

	"github.com/segmentio/kafka-go"

	"sparkbridge/listener"
	"sparkbridge/sinks"
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
		msg := message(&events[i], topic, limit)
		if bytes[topic] > 0 && bytes[topic]+recordSize(&msg) > limit {
			return round, nil
		}
		bytes[topic] += recordSize(&msg)
		round = append(round, msg)
	}
	return round, nil
}

// message returns e as it goes to topic, cut and marked if it is larger than limit.
func message(e *listener.Event, topic string, limit int) kafka.Message {
	msg := binary(e, topic)
	if recordSize(&msg) <= limit {
		return msg
	}
	cut := sinks.Fit(*e, limit, func(e *listener.Event) int {
		msg := binary(e, topic)
		return recordSize(&msg)
	})
	return binary(&cut, topic)
}

// binary is the binary mode of the CloudEvents binding for Kafka. Unlike those of
// HTTP its headers are UTF-8. The record's time is when it is written: Kafka
// counts retention from it and refuses what lies in the future.
func binary(e *listener.Event, topic string) kafka.Message {
	attributes := sinks.Attributes(e)
	headers := make([]kafka.Header, 0, len(attributes)+1)
	for _, a := range attributes {
		headers = append(headers, kafka.Header{Key: "ce_" + a.Name, Value: []byte(a.Value)})
	}
	if contentType := sinks.ContentType(e); contentType != "" {
		headers = append(headers, kafka.Header{Key: "content-type", Value: []byte(contentType)})
	}
	return kafka.Message{Topic: topic, Key: []byte(e.PartitionKey()), Value: e.Payload, Headers: headers}
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
