//go:build integration

package integration

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/segmentio/kafka-go"

	"sparkbridge/integration/servers"
)

// sink is a destination: how it is configured, and what has arrived there.
type sink struct {
	*inbox
	name   string
	config map[string]any // of the sink, as in the file
	open   func()         // makes what must exist at the server, and starts to read
}

// impatient makes a sink try again soon after its server has come up.
var impatient = map[string]any{"initial": "100ms", "max": "1s"}

// natsSink is a JetStream stream for one source.
func natsSink(t *testing.T, name, server, source string) *sink {
	s := &sink{inbox: newInbox(), name: name}
	s.config = map[string]any{"name": name, "retry": impatient, "nats": map[string]any{"url": server}}
	s.open = func() {
		client, err := nats.Connect(server)
		requireNoError(t, err)
		t.Cleanup(client.Close)
		js, err := jetstream.New(client)
		requireNoError(t, err)
		stream, err := js.CreateStream(within(t, patience), jetstream.StreamConfig{Name: source + "-" + name, Subjects: []string{"spark." + source + ".>"}})
		requireNoError(t, err)
		consumer, err := stream.OrderedConsumer(within(t, patience), jetstream.OrderedConsumerConfig{})
		requireNoError(t, err)
		reading, err := consumer.Consume(func(msg jetstream.Msg) { s.add(natsArrival(t, msg)) })
		requireNoError(t, err)
		t.Cleanup(func() { reading.Stop(); <-reading.Closed() })
	}
	return s
}

func natsArrival(t *testing.T, msg jetstream.Msg) arrival {
	a := arrival{place: msg.Subject(), key: decoded(t, msg.Headers().Get("Nats-Msg-Id")), attributes: map[string]string{}, payload: msg.Data()}
	for name, values := range msg.Headers() {
		if attribute, found := strings.CutPrefix(name, "ce-"); found {
			a.attributes[attribute] = decoded(t, values[0])
		}
	}
	a.attributes["datacontenttype"] = msg.Headers().Get("content-type")
	return a
}

// decoded undoes the percent-encoding of CloudEvents' bindings with ASCII headers.
func decoded(t *testing.T, header string) string {
	value, err := url.PathUnescape(header)
	if err != nil {
		t.Errorf("header %q: %v", header, err)
	}
	return value
}

// partitions of every topic; more than one, so that order by key means something.
const partitions = 3

// kafkaSink is a topic for one source. The broker is asked for when the sink opens, since it
// may not run before.
func kafkaSink(t *testing.T, name, address, source string, broker func() *servers.Kafka) *sink {
	topic := source + "-" + name
	s := &sink{inbox: newInbox(), name: name}
	s.config = map[string]any{"name": name, "retry": impatient, "kafka": map[string]any{"brokers": []string{address}, "topic": topic}}
	s.open = func() {
		requireNoError(t, broker().CreateTopic(within(t, patience), topic, partitions))
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		var reading sync.WaitGroup
		for partition := range partitions {
			reader := kafka.NewReader(kafka.ReaderConfig{
				Brokers: []string{address}, Topic: topic, Partition: partition, MaxWait: 100 * time.Millisecond, ReadBackoffMax: 200 * time.Millisecond,
			})
			reading.Go(func() { s.readKafka(ctx, t, reader) })
		}
		t.Cleanup(func() { stop(); reading.Wait() })
	}
	return s
}

func (s *sink) readKafka(ctx context.Context, t *testing.T, reader *kafka.Reader) {
	defer reader.Close()
	for {
		message, err := reader.ReadMessage(ctx)
		if errors.Is(err, context.Canceled) {
			return
		}
		if err != nil {
			t.Errorf("read Kafka: %v", err)
			return
		}
		s.add(kafkaArrival(message))
	}
}

func kafkaArrival(message kafka.Message) arrival {
	a := arrival{place: message.Topic, key: string(message.Key), attributes: map[string]string{}, payload: message.Value}
	for _, header := range message.Headers {
		if attribute, found := strings.CutPrefix(header.Key, "ce_"); found {
			a.attributes[attribute] = string(header.Value)
		} else if header.Key == "content-type" {
			a.attributes["datacontenttype"] = string(header.Value)
		}
	}
	return a
}

// opened makes the sinks' places at their servers, which run already.
func opened(sinks ...*sink) []*sink {
	for _, s := range sinks {
		s.open()
	}
	return sinks
}

// three are a sink of each kind, on the shared servers.
func three(t *testing.T, broker *servers.Kafka, server *servers.NATS, source string) []*sink {
	t.Helper()
	return opened(
		natsSink(t, "nats", server.URL(), source),
		kafkaSink(t, "kafka", broker.Brokers()[0], source, func() *servers.Kafka { return broker }),
		webhookSink(t, "webhook"),
	)
}
