package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"

	"github.com/segmentio/kafka-go"

	"sparkbridge/sinks"
)

// explain says what failed and, where the user can do something, what.
func (s *Sink) explain(topic string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	next := s.nextStep(topic, err)
	if next != "" {
		next = "; " + next
	}
	return fmt.Errorf("write to topic %s at %s: %w%s", topic, s.brokers(), denied(err), next)
}

func (s *Sink) brokers() string { return strings.Join(s.cfg.Brokers, ",") }

// denied marks the answer of brokers that do not let us in.
func denied(err error) error {
	if errors.Is(err, kafka.SASLAuthenticationFailed) || errors.Is(err, kafka.UnsupportedSASLMechanism) {
		return fmt.Errorf("%w (%w)", sinks.ErrDenied, err)
	}
	return err
}

func (s *Sink) nextStep(topic string, err error) string {
	if next := s.accessStep(err); next != "" {
		return next
	}
	switch {
	case errors.Is(err, kafka.UnknownTopicOrPartition) && s.cfg.CreateTopic.Partitions > 0:
		return "it was made, and is not known everywhere yet"
	case errors.Is(err, kafka.UnknownTopicOrPartition):
		return fmt.Sprintf("create it, such as: kafka-topics.sh --bootstrap-server %s --create --topic %s, or set create_topic", s.brokers(), topic)
	case errors.Is(err, kafka.InvalidReplicationFactor):
		return "set create_topic.replication_factor to at most the number of brokers"
	case errors.Is(err, kafka.InvalidTopic):
		return "choose a topic template that makes at most 249 letters, digits, dots, _ and -"
	case errors.Is(err, kafka.TopicAuthorizationFailed), errors.Is(err, kafka.ClusterAuthorizationFailed):
		return "allow this client to describe and write the topic, and to create it if it is to"
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no acknowledgement in %v", s.writer.WriteTimeout)
	}
	return ""
}

// accessStep is what to do where a connection is not let in, empty for all else.
func (s *Sink) accessStep(err error) string {
	switch {
	case errors.Is(err, kafka.SASLAuthenticationFailed):
		return "correct sasl.username and sasl.password"
	case errors.Is(err, kafka.UnsupportedSASLMechanism):
		return "set sasl.mechanism to one that this listener of the broker has"
	case strings.Contains(err.Error(), expectsTLS):
		return "set tls, at least enabled: true, or take the PLAINTEXT listener"
	case s.cfg.TLS.Wanted() && (errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)):
		return "the broker hung up; if this lasts, it refuses our certificate: set tls.cert_file and tls.key_file to one that it takes"
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "the broker closed the connection: it is stopping, or this is a listener for something else; " + s.otherListener()
	}
	return sinks.TLSAdvice(err)
}

// expectsTLS is a part of the client library's guess at an answer that it cannot
// read; it has no type.
const expectsTLS = "appears to be expecting TLS"

// otherListener says what to change where a listener does not speak as we do.
func (s *Sink) otherListener() string {
	switch {
	case s.cfg.TLS.Wanted() && s.cfg.SASL != (SASL{}):
		return "take its SASL_SSL listener"
	case s.cfg.TLS.Wanted():
		return "take its SSL listener, or set sasl"
	case s.cfg.SASL != (SASL{}):
		return "take its SASL_PLAINTEXT listener, or set tls"
	}
	return "take its PLAINTEXT listener, or set sasl for one with SASL, tls for one with TLS"
}
