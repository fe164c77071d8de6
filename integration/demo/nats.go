package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// broker is a NATS server in this process, with JetStream and a stream on spark.>, and a
// consumer of that stream.
type broker struct {
	server  *server.Server
	client  *nats.Conn
	reading jetstream.ConsumeContext
}

// startBroker gives each event of the stream to receive, from one goroutine.
func startBroker(ctx context.Context, dir string, receive func(event)) (*broker, error) {
	b := &broker{}
	var err error
	b.server, err = server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: filepath.Join(dir, "nats"),
	})
	if err != nil {
		return nil, fmt.Errorf("make NATS server: %w", err)
	}
	b.server.Start()
	if err := b.subscribe(ctx, receive); err != nil {
		b.stop()
		return nil, err
	}
	return b, nil
}

func (b *broker) subscribe(ctx context.Context, receive func(event)) error {
	if !b.server.ReadyForConnections(30 * time.Second) {
		return errors.New("start NATS server: it is not ready after 30s")
	}
	var err error
	if b.client, err = nats.Connect(b.url(), nats.InProcessServer(b.server)); err != nil {
		return fmt.Errorf("connect to NATS: %w", err)
	}
	js, err := jetstream.New(b.client)
	if err != nil {
		return fmt.Errorf("use JetStream: %w", err)
	}
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: "spark", Subjects: []string{"spark.>"}})
	if err != nil {
		return fmt.Errorf("make stream on spark.>: %w", err)
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return fmt.Errorf("read stream on spark.>: %w", err)
	}
	b.reading, err = consumer.Consume(func(m jetstream.Msg) { receive(fromNATS(m.Headers(), m.Data())) })
	if err != nil {
		return fmt.Errorf("read stream on spark.>: %w", err)
	}
	return nil
}

func (b *broker) url() string { return b.server.ClientURL() }

// stop ends what has been started.
func (b *broker) stop() {
	if b.reading != nil {
		b.reading.Stop()
		<-b.reading.Closed()
	}
	if b.client != nil {
		b.client.Close()
	}
	b.server.Shutdown()
	b.server.WaitForShutdown()
}

// fromNATS reads an event in the binary mode of CloudEvents: attributes as headers, the payload
// as the message. What cannot be read stays empty, and shows.
func fromNATS(header nats.Header, data []byte) event {
	attribute := func(name string) string {
		value, _ := url.PathUnescape(header.Get("ce-" + name))
		return value
	}
	e := event{
		ID: attribute("id"), Type: attribute("type"), Subject: attribute("subject"),
		RunID: attribute("sparkrunid"), Outcome: attribute("sparkoutcome"),
	}
	_ = json.Unmarshal(data, &e.Data)
	return e
}
