package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/segmentio/kafka-go"
)

// explain says what failed and, where the user can do something, what.
func (s *Sink) explain(topic string, err error) error {
	brokers := strings.Join(s.cfg.Brokers, ",")
	next := ""
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, kafka.UnknownTopicOrPartition):
		next = fmt.Sprintf("create it, such as: kafka-topics.sh --bootstrap-server %s --create --topic %s", brokers, topic)
	case errors.Is(err, kafka.InvalidTopic):
		next = "choose a topic template that makes at most 249 letters, digits, dots, _ and -"
	case errors.Is(err, kafka.TopicAuthorizationFailed):
		next = "allow this client to describe and write the topic"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		next = "the broker closed the connection: it is stopping, or this is a listener for TLS or SASL; take its PLAINTEXT listener"
	case errors.Is(err, context.DeadlineExceeded):
		next = fmt.Sprintf("no acknowledgement in %v", s.writer.WriteTimeout)
	}
	if next != "" {
		next = "; " + next
	}
	return fmt.Errorf("write to topic %s at %s: %w%s", topic, brokers, err, next)
}
