// Package kafka delivers events to Kafka topics, acknowledged by all in-sync
// replicas.
//
// Events travel as CloudEvents in binary mode: attributes in ce_ headers, Spark's
// own bytes as the value. The record key is the query id, and partitions are
// chosen as Java's clients choose them, so that other producers' records of the
// same key stand beside these.
//
// Order within a query is kept without an idempotent producer by one invariant:
// a request for a partition begins with the first event of that partition that is
// not acknowledged, and has every one of its events up to its last. Therefore all
// events of a round that fall into one partition go in one request, which the
// broker takes or refuses as a whole, and no request for a partition leaves while
// one before it is open. A request that the broker carries out late, after it was
// given up, can then only repeat events or bring the next ones in their order.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

const (
	writeTimeout = 10 * time.Second // of one request, from sending it to its acknowledgement
	dialTimeout  = 3 * time.Second  // of one connection, handshakes included
	metadataTTL  = 2 * time.Second  // how late a new topic or leader may be noticed
	linger       = time.Millisecond // how long the writer waits for more when a round has several partitions
)

// Sink writes events to the topics of one Kafka cluster.
type Sink struct {
	cfg    Config
	topic  *sinks.Template
	form   form
	dialer *dialer
	writer *kafka.Writer
	limits *limits
	log    *slog.Logger

	ambiguous atomic.Uint64

	left   chan struct{} // closed at the end of a write whose Deliver was cancelled; nil if there is none
	closed bool
}

var _ sinks.Sink = (*Sink)(nil)

// New returns a sink. It connects at the first delivery: brokers that are down
// are an error of Deliver, not of New. name is how the sink is called in the
// brokers' logs, as its client id, and in its own log.
func New(cfg Config, name string, log *slog.Logger) (*Sink, error) {
	return newSink(cfg, name, log, writeTimeout)
}

func newSink(cfg Config, name string, log *slog.Logger, timeout time.Duration) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	topic, err := parseTopic(cfg.Topic)
	if err != nil {
		return nil, err
	}
	form, err := cfg.form()
	if err != nil {
		return nil, err
	}
	mechanism, err := cfg.SASL.mechanism()
	if err != nil {
		return nil, err
	}
	dialer := newDialer(cfg.TLS)
	transport := &kafka.Transport{
		SASL:        mechanism,
		Dial:        dialer.dial,
		DialTimeout: dialTimeout,
		MetadataTTL: metadataTTL,
		ClientID:    "sparkbridge-" + name,
	}
	if topic.Fixed() {
		transport.MetadataTopics = []string{cfg.Topic} // else all topics of the cluster
	}
	cluster := kafka.TCP(cfg.Brokers...)
	return &Sink{
		cfg: cfg, topic: topic.With(cfg.Labels), form: form, dialer: dialer, log: log.With("sink", name),
		writer: newWriter(cluster, transport, timeout),
		limits: newLimits(&kafka.Client{Addr: cluster, Transport: transport, Timeout: timeout}),
	}, nil
}

// newWriter sets what kafka-go's defaults would get wrong: no acknowledgement,
// retries that go on behind our back, and a second's wait for more messages.
func newWriter(cluster net.Addr, transport *kafka.Transport, timeout time.Duration) *kafka.Writer {
	return &kafka.Writer{
		Addr:         cluster,
		Transport:    transport,
		Balancer:     javaPartitioner,
		RequiredAcks: kafka.RequireAll,
		MaxAttempts:  1,
		WriteTimeout: timeout,
		BatchTimeout: linger,
		BatchBytes:   1 << 30, // rounds are bounded by the topics' own limits
	}
}

// javaPartitioner is murmur2 of the key, sign bit cleared, modulo the number of
// partitions, as in the Java client for records with a key.
var javaPartitioner = kafka.Murmur2Balancer{Consistent: true}

// Deliver writes the events in their order and waits until all in-sync replicas
// have them. It returns the number of events from the front that are
// acknowledged. When ctx ends it returns at once; a request that is under way
// is left to finish, and the next Deliver waits for it before it sends anything.
func (s *Sink) Deliver(ctx context.Context, events []listener.Event) (acked int, err error) {
	for acked < len(events) && err == nil {
		if err = s.settle(ctx); err == nil {
			var n int
			n, err = s.deliver(ctx, events[acked:])
			acked += n
		}
	}
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return acked, err
}

// settle waits for the write that a cancelled Deliver has left behind.
func (s *Sink) settle(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.left == nil {
		return nil
	}
	select {
	case <-s.left: // its events are delivered again, whatever became of them
		s.left = nil
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// deliver writes one round.
func (s *Sink) deliver(ctx context.Context, events []listener.Event) (int, error) {
	round, err := s.round(ctx, events)
	if err != nil {
		return 0, err
	}
	err = s.write(ctx, round)
	if err == nil {
		return len(round), nil
	}
	acked, first := firstFailure(err)
	if ctx.Err() != nil {
		return acked, ctx.Err()
	}
	s.countAmbiguous(err)
	err = first
	if errors.Is(err, kafka.MessageSizeTooLarge) || errors.Is(err, kafka.RecordListTooLarge) {
		topic := round[acked].Topic
		if s.limits.lower(ctx, round, topic) {
			s.log.Info("topic takes less than was sent; cutting to fit", "topic", topic, "max_bytes", s.limits.known[topic].bytes)
			return acked, nil // the caller comes again, now with less
		}
		if alone(round, topic) {
			return acked, sinks.Permanent(s.explain(topic, err))
		}
	} else {
		s.limits.forget()
	}
	return acked, s.explain(round[acked].Topic, err)
}

// write hands a round to the writer, whose context never ends: a cancelled batch
// is not taken back but written later. The writer bounds every wait itself.
func (s *Sink) write(ctx context.Context, round []kafka.Message) error {
	s.writer.BatchSize = len(round)
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = s.writer.WriteMessages(context.WithoutCancel(ctx), round...)
	}()
	select {
	case <-done:
		return err
	case <-ctx.Done():
		s.left = done
		return ctx.Err()
	}
}

// firstFailure returns how many messages from the front are written, and the
// error of the one behind them. An error that is not told by message comes from
// before anything was sent.
func firstFailure(err error) (acked int, cause error) {
	var each kafka.WriteErrors
	if !errors.As(err, &each) {
		return 0, err
	}
	for i, cause := range each {
		if cause != nil {
			return i, cause
		}
	}
	return 0, err
}

// Close cuts the connections and waits for what was under way. All that Deliver
// has acknowledged is at the brokers.
func (s *Sink) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.dialer.close()
	if s.left != nil {
		<-s.left
	}
	err := s.writer.Close()
	s.writer.Transport.(*kafka.Transport).CloseIdleConnections()
	if err != nil {
		return fmt.Errorf("close writer to %s: %w", s.brokers(), err)
	}
	return nil
}
