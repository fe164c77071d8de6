//go:build integration

package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"sparkbridge/integration/servers"
	"sparkbridge/sinks"
	"sparkbridge/sinks/sinktest"
)

// testBroker is a real broker with a listener for each kind of security. It sends its
// clients through a proxy at each, which can slow them down and cut them off.
type testBroker struct {
	*servers.Kafka
	authority *sinktest.Authority
	doors     map[string]*sinktest.Proxy // by listener
}

// The listeners, with what they speak. MUTUAL wants a certificate of its clients.
var listeners = map[string]string{
	"PLAINTEXT": "PLAINTEXT", "SASL": "SASL_PLAINTEXT", "TLS": "SSL", "MUTUAL": "SSL", "SASLTLS": "SASL_SSL",
}

// startBroker starts a broker that ends with the test. It would make topics for whoever
// asks carelessly.
func startBroker(t *testing.T) testBroker {
	t.Helper()
	b := testBroker{authority: sinktest.NewAuthority(t), doors: map[string]*sinktest.Proxy{}}
	conf, port := b.properties(t)
	b.secure(t, conf)
	var err error
	b.Kafka, err = servers.StartKafka(t.Context(), servers.KafkaOptions{
		Dir: t.TempDir(), Port: port, Conf: conf,
		Scram: []string{"SCRAM-SHA-256=[name=bridge,password=s3cret]", "SCRAM-SHA-512=[name=bridge,password=s3cret]"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Kill)
	return b
}

// properties opens a door for each listener, and returns the port of the plaintext one.
func (b testBroker) properties(t *testing.T) (conf map[string]string, plaintext int) {
	controller := freePort(t)
	bound, advertised, protocols := []string{"CONTROLLER://" + controller}, []string{}, []string{"CONTROLLER:PLAINTEXT"}
	for name, protocol := range listeners {
		at := freePort(t)
		if name == "PLAINTEXT" {
			_, port, _ := strings.Cut(at, ":")
			plaintext, _ = strconv.Atoi(port)
		}
		b.doors[name] = sinktest.NewProxy(t, at)
		bound = append(bound, name+"://"+at)
		advertised = append(advertised, name+"://"+b.at(name))
		protocols = append(protocols, name+":"+protocol)
	}
	return map[string]string{
		"listeners": strings.Join(bound, ","), "advertised.listeners": strings.Join(advertised, ","),
		"listener.security.protocol.map": strings.Join(protocols, ","), "inter.broker.listener.name": "PLAINTEXT",
		"controller.quorum.voters": "1@" + controller, "auto.create.topics.enable": "true",
	}, plaintext
}

// secure sets the certificate of the broker, and whom it lets in.
func (b testBroker) secure(t *testing.T, conf map[string]string) {
	const login = "org.apache.kafka.common.security."
	maps.Copy(conf, map[string]string{
		"ssl.keystore.type": "PEM", "ssl.keystore.location": keystore(t, b.authority),
		"ssl.truststore.type": "PEM", "ssl.truststore.location": b.authority.File,
		"listener.name.mutual.ssl.client.auth":       "required",
		"sasl.enabled.mechanisms":                    "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		"listener.name.sasl.sasl.enabled.mechanisms": "SCRAM-SHA-256",
	})
	for _, name := range []string{"sasl", "sasltls"} {
		conf["listener.name."+name+".plain.sasl.jaas.config"] = login + `plain.PlainLoginModule required user_bridge="s3cret";`
		conf["listener.name."+name+".scram-sha-256.sasl.jaas.config"] = login + "scram.ScramLoginModule required;"
		conf["listener.name."+name+".scram-sha-512.sasl.jaas.config"] = login + "scram.ScramLoginModule required;"
	}
}

// keystore is the key and certificate of the broker in one file.
func keystore(t *testing.T, authority *sinktest.Authority) string {
	t.Helper()
	certFile, keyFile := authority.Issue(t, "broker.test")
	var all []byte
	for _, name := range []string{keyFile, certFile} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	file := filepath.Join(t.TempDir(), "keystore.pem")
	if err := os.WriteFile(file, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func freePort(t *testing.T) string {
	t.Helper()
	port, err := servers.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// at is the address of a listener.
func (b testBroker) at(listener string) string { return b.doors[listener].Addr() }

// user is what a sink needs to be let in as one, by TLS.
func (b testBroker) user(mechanism string) Config {
	return Config{
		Brokers: []string{b.at("SASLTLS")}, TLS: sinks.TLS{CAFile: b.authority.File},
		SASL: SASL{Mechanism: mechanism, Username: "bridge", Password: "s3cret"},
	}
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

// openSink opens a sink without security, openAs one with.
func openSink(t testing.TB, broker testBroker, topic string) *Sink {
	t.Helper()
	return openAs(t, Config{Brokers: []string{broker.at("PLAINTEXT")}}, topic)
}

func openAs(t testing.TB, cfg Config, topic string) *Sink {
	t.Helper()
	cfg.Topic = topic
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
