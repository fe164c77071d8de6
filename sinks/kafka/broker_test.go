//go:build integration

package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"sparkbridge/integration/servers"
	"sparkbridge/sinks/sinktest"
)

// testBroker is a real broker that sends its clients through a proxy, which can
// slow them down.
type testBroker struct {
	*servers.Kafka
	proxy *sinktest.Proxy
}

// startBroker starts a broker that ends with the test.
func startBroker(t *testing.T) testBroker {
	t.Helper()
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	proxy := sinktest.NewProxy(t, fmt.Sprintf("127.0.0.1:%d", port))
	broker, err := servers.StartKafka(t.Context(), servers.KafkaOptions{
		Dir: t.TempDir(), Port: port,
		Conf: map[string]string{"advertised.listeners": "PLAINTEXT://" + proxy.Addr()},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Kill)
	return testBroker{broker, proxy}
}

// createTopic returns when every partition can be used, which is later than when
// it has a leader.
func createTopic(t *testing.T, broker testBroker, name string, partitions int, config ...kafka.ConfigEntry) {
	t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(broker.Brokers()...), Transport: &kafka.Transport{}}
	defer client.Transport.(*kafka.Transport).CloseIdleConnections()
	topic := kafka.TopicConfig{Topic: name, NumPartitions: partitions, ReplicationFactor: 1, ConfigEntries: config}
	answer, err := client.CreateTopics(t.Context(), &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{topic}})
	if err := errors.Join(err, answer.Errors[name]); err != nil {
		t.Fatal(err)
	}
	for partition := range partitions {
		for usable(t.Context(), broker, name, partition) != nil {
			select {
			case <-t.Context().Done():
				t.Fatal(t.Context().Err())
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
}

func usable(ctx context.Context, broker testBroker, topic string, partition int) error {
	conn, err := kafka.DialLeader(ctx, "tcp", broker.Brokers()[0], topic, partition)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.ReadLastOffset()
	return err
}

func restart(t testing.TB, broker testBroker) {
	t.Helper()
	if err := broker.Restart(context.Background()); err != nil {
		t.Error(err)
	}
}

func openSink(t testing.TB, broker testBroker, topic string) *Sink {
	t.Helper()
	cfg := Config{Brokers: broker.Brokers(), Topic: topic}
	sink, err := newSink(cfg, "test", slog.New(slog.DiscardHandler), 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sink.Close() })
	return sink
}

// reader reads a topic, each time what is new.
type reader struct {
	broker, topic string
	offsets       []int64 // by partition
	got           []sinktest.Message
}

func (r *reader) all(ctx context.Context) ([]sinktest.Message, error) {
	for partition := range r.offsets {
		if err := r.partition(ctx, partition); err != nil {
			return nil, err
		}
	}
	return r.got, nil
}

func (r *reader) partition(ctx context.Context, partition int) error {
	conn, err := kafka.DialLeader(ctx, "tcp", r.broker, r.topic, partition)
	if err != nil {
		return err
	}
	defer conn.Close()
	end, err := conn.ReadLastOffset()
	if err != nil {
		return err
	}
	for r.offsets[partition] < end {
		if _, err := conn.Seek(r.offsets[partition], kafka.SeekAbsolute); err != nil {
			return err
		}
		batch := conn.ReadBatch(1, 8<<20)
		for {
			msg, err := batch.ReadMessage()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return errors.Join(err, batch.Close())
			}
			r.got = append(r.got, received(msg))
			r.offsets[partition] = msg.Offset + 1
		}
		if err := batch.Close(); err != nil {
			return err
		}
	}
	return nil
}

func received(msg kafka.Message) sinktest.Message {
	m := sinktest.Message{PartitionKey: string(msg.Key), Attributes: map[string]string{}, Payload: msg.Value}
	for _, h := range msg.Headers {
		if name, found := strings.CutPrefix(h.Key, "ce_"); found {
			m.Attributes[name] = string(h.Value)
		} else if h.Key == "content-type" {
			m.ContentType = string(h.Value)
		}
	}
	return m
}
