package kafka

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go"

	"sparkbridge/sinks"
)

func TestValidateAccess(t *testing.T) {
	far, near := []string{"kafka.test:9092"}, []string{"localhost:9092", "LocalHost:9092", "127.0.0.1:9092", "[::1]:9092"}
	good := SASL{Mechanism: "plain", Username: "u", Password: "hunter2"}
	with := func(change func(*SASL)) SASL {
		s := good
		change(&s)
		return s
	}
	for want, cfg := range map[string]Config{
		"sasl: would log in on kafka.test:9092 without TLS":              {Brokers: far, SASL: good},
		"sasl.mechanism: is missing":                                     {Brokers: near, SASL: with(func(s *SASL) { s.Mechanism = "" })},
		`sasl.mechanism: "gssapi" is not known`:                          {Brokers: near, SASL: with(func(s *SASL) { s.Mechanism = "gssapi" })},
		"sasl.username: is missing":                                      {Brokers: near, SASL: with(func(s *SASL) { s.Username = "" })},
		"sasl.password: is missing":                                      {Brokers: near, SASL: with(func(s *SASL) { s.Password = "" })},
		"sasl.password: it, or sasl.username, holds characters":          {Brokers: near, SASL: SASL{Mechanism: "scram-sha-256", Username: "u", Password: "hunter2\x00"}},
		"tls.cert_file: is missing":                                      {Brokers: far, TLS: sinks.TLS{KeyFile: "k"}},
		"create_topic.partitions: is missing":                            {Brokers: near, CreateTopic: CreateTopic{ReplicationFactor: 1}},
		"create_topic.partitions: -1 is no number of partitions":         {Brokers: near, CreateTopic: CreateTopic{Partitions: -1}},
		"create_topic.replication_factor: 70000 is no number of brokers": {Brokers: near, CreateTopic: CreateTopic{Partitions: 1, ReplicationFactor: 70_000}},
	} {
		cfg.Topic = "t"
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, cfg := range []Config{
		{Brokers: near, SASL: good}, {Brokers: far, SASL: good, TLS: sinks.TLS{Enabled: true}},
		{Brokers: far, SASL: with(func(s *SASL) { s.WithoutTLS = true })}, {Brokers: far, CreateTopic: CreateTopic{Partitions: 3}},
	} {
		cfg.Topic = "t"
		if err := cfg.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestAmbiguous(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{io.ErrUnexpectedEOF, true},
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, true},
		{fmt.Errorf("write: %w", kafka.RequestTimedOut), true},
		{kafka.NotEnoughReplicasAfterAppend, true},
		{kafka.NotEnoughReplicas, false},
		{kafka.UnknownTopicOrPartition, false},
		{kafka.SASLAuthenticationFailed, false},
		{kafka.MessageTooLargeError{}, false},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, false},
		{&dialError{io.EOF}, false},
	} {
		if got := ambiguous(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
	var s Sink
	s.countAmbiguous(io.EOF) // before anything was sent
	s.countAmbiguous(kafka.WriteErrors{nil, io.EOF, kafka.NotEnoughReplicas, io.EOF})
	if got := s.State().Ambiguous; got != 2 {
		t.Errorf("%d counted, want 2", got)
	}
}

// A broker that knows the user by several mechanisms would not tell one from another.
func TestMechanisms(t *testing.T) {
	for written, want := range map[string]string{"plain": "PLAIN", "scram-sha-256": "SCRAM-SHA-256", "scram-sha-512": "SCRAM-SHA-512"} {
		mechanism, err := SASL{Mechanism: written, Username: "u", Password: "p"}.mechanism()
		if err != nil || mechanism.Name() != want {
			t.Errorf("%s is %v, %v", written, mechanism, err)
		}
	}
}
