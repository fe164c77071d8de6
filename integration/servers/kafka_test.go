//go:build integration

package servers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

func startKafka(t *testing.T, options KafkaOptions) *Kafka {
	t.Helper()
	options.Dir = t.TempDir()
	broker, err := StartKafka(within(t, 4*time.Minute), options)
	requireNoError(t, err)
	stopped(t, broker)
	return broker
}

func produce(ctx context.Context, broker *Kafka, topic string, from, to int) error {
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	writer := &kafka.Writer{Addr: kafka.TCP(broker.Brokers()...), Topic: topic, RequiredAcks: kafka.RequireAll,
		BatchTimeout: time.Millisecond, Transport: transport}
	var messages []kafka.Message
	for n := from; n < to; n++ {
		messages = append(messages, kafka.Message{Value: fmt.Appendf(nil, "message %d", n)})
	}
	if err := writer.WriteMessages(ctx, messages...); err != nil {
		return err
	}
	return writer.Close()
}

func requireMessages(t *testing.T, broker *Kafka, topic string, want int) {
	t.Helper()
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: broker.Brokers(), Topic: topic, MaxWait: 100 * time.Millisecond})
	defer reader.Close()
	for n := range want {
		message, err := reader.ReadMessage(within(t, time.Minute))
		requireNoError(t, err)
		if got, want := string(message.Value), fmt.Sprintf("message %d", n); got != want {
			t.Fatalf("offset %d holds %q, want %q", message.Offset, got, want)
		}
	}
}

func TestKafkaKeepsDataOverKill(t *testing.T) {
	broker := startKafka(t, KafkaOptions{})
	requireNoError(t, broker.CreateTopic(within(t, time.Minute), "events", 1))
	requireNoError(t, produce(within(t, time.Minute), broker, "events", 0, 100))

	pid := broker.Pid()
	broker.Kill()
	requireGone(t, pid, broker.Port())
	began := time.Now()
	requireNoError(t, broker.Restart(within(t, 4*time.Minute)))
	t.Logf("back %s after kill -9", time.Since(began).Round(time.Millisecond))
	requireNoError(t, produce(within(t, time.Minute), broker, "events", 100, 110))
	requireMessages(t, broker, "events", 110)

	pid = broker.Pid()
	requireNoError(t, broker.Stop())
	requireGone(t, pid, broker.Port())
}

func TestKafkaPause(t *testing.T) {
	broker := startKafka(t, KafkaOptions{})
	requireNoError(t, broker.CreateTopic(within(t, time.Minute), "events", 3))
	broker.Pause()
	requireState(t, broker.Pid(), "T")
	frozen, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := produce(frozen, broker, "events", 0, 1); err == nil {
		t.Error("a paused broker took a message")
	}
	broker.Resume()
	requireNoError(t, produce(within(t, time.Minute), broker, "events", 1, 2))
	broker.Pause() // a server is stopped in good order even from here
}

func TestSparkReadsKafka(t *testing.T) {
	broker := startKafka(t, KafkaOptions{})
	requireNoError(t, broker.CreateTopic(within(t, time.Minute), "events", 2))
	requireNoError(t, produce(within(t, time.Minute), broker, "events", 0, 10))
	for _, version := range []string{"4.2", "4.0"} {
		t.Run(version, func(t *testing.T) {
			spark := startSpark(t, SparkOptions{Version: version})
			job := runStreams(t, spark, "", "--queries", "kafka=orders", "--kafka", broker.Brokers()[0]+"/events")
			query := fact(t, job, "started", "kafka")
			awaitLogged(within(t, time.Minute), t, spark, func(events []LoggedEvent) bool {
				return count(events, "progress", query.RunID) > 0
			})
		})
	}
}
