package servers

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
)

// KafkaOptions says how to start a Kafka broker.
type KafkaOptions struct {
	Port  int               // 0 picks a free one; it stays the same over a Restart
	Dir   string            // required: work folder, with the data
	Conf  map[string]string // server.properties; they win over those of this package
	Scram []string          // users, each as kafka-storage takes them: SCRAM-SHA-256=[name=…,password=…]
	Log   io.Writer         // gets the broker's output beside Dir/kafka.log; may be nil
}

// Kafka is a single KRaft node, broker and controller in one, in a JVM of its own.
type Kafka struct {
	process
	port int
}

// StartKafka starts a broker and returns when it answers. ctx bounds the start only. A folder
// that has a broker's data already is used as it is.
func StartKafka(ctx context.Context, options KafkaOptions) (*Kafka, error) {
	libs, err := part("kafka-"+versions.Kafka.Version, "kafka")
	if err != nil {
		return nil, err
	}
	java, err := javaProgram()
	if err != nil {
		return nil, err
	}
	if options.Dir == "" {
		return nil, errors.New("start Kafka: KafkaOptions.Dir is empty")
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("start Kafka: %w", err)
	}
	port, err := choosePort(options.Port)
	if err != nil {
		return nil, fmt.Errorf("start Kafka: %w", err)
	}
	controller, err := FreePort()
	if err != nil {
		return nil, fmt.Errorf("start Kafka: %w", err)
	}
	broker := &Kafka{port: port}
	// C1 alone: a broker of tests lives for too short a time to earn back what C2 costs.
	broker.command = command{
		name:   "Kafka " + versions.Kafka.Version,
		path:   java,
		args:   []string{"-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dlog4j2.configurationFile=log4j2.properties", "-cp", filepath.Join(libs, "*"), "kafka.Kafka", "server.properties"},
		env:    os.Environ(),
		dir:    dir,
		output: "kafka.log",
		log:    options.Log,
		ready:  broker.answers,
	}
	if err := writeKafka(dir, properties(dir, port, controller, options.Conf)); err != nil {
		return nil, fmt.Errorf("start Kafka: %w", err)
	}
	if err := format(ctx, java, libs, dir, options.Scram); err != nil {
		return nil, fmt.Errorf("start Kafka: %w", err)
	}
	if err := broker.start(ctx); err != nil {
		return nil, err
	}
	return broker, nil
}

// Brokers is the list that clients take, of the plaintext listener.
func (k *Kafka) Brokers() []string { return []string{loopback(k.port)} }

// Port is the port of the plaintext listener.
func (k *Kafka) Port() int { return k.port }

// CreateTopic creates a topic and returns when each of its partitions has a leader.
func (k *Kafka) CreateTopic(ctx context.Context, name string, partitions int) error {
	topic := kafka.TopicConfig{Topic: name, NumPartitions: partitions, ReplicationFactor: 1}
	err := k.ask(ctx, func(broker *kafka.Conn) error { return broker.CreateTopics(topic) })
	if err != nil {
		return fmt.Errorf("create topic %q: %w", name, err)
	}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		err := k.ask(ctx, func(broker *kafka.Conn) error { return led(broker, name) })
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("await topic %q: %w: %w", name, context.Cause(ctx), err)
		case <-again.C:
		}
	}
}

// answers is nil once the broker is registered with its controller and leads what it stores:
// after a kill -9 it first has to wait for the end of its former self's session.
func (k *Kafka) answers(ctx context.Context) error {
	return k.ask(ctx, func(broker *kafka.Conn) error {
		found, err := broker.Brokers()
		if err == nil && len(found) == 0 {
			err = errors.New("no broker is registered yet")
		}
		if err != nil {
			return err
		}
		return led(broker)
	})
}

// led is nil if all partitions of the topics, or of all topics, have a leader.
func led(broker *kafka.Conn, topics ...string) error {
	partitions, err := broker.ReadPartitions(topics...)
	if err != nil {
		return err
	}
	for _, partition := range partitions {
		if partition.Leader.Host == "" {
			return fmt.Errorf("partition %d of %q has no leader", partition.ID, partition.Topic)
		}
	}
	return nil
}

// ask uses a connection of its own each time, since kafka-go's clients answer from a cache.
func (k *Kafka) ask(ctx context.Context, question func(*kafka.Conn) error) error {
	broker, err := kafka.DialContext(ctx, "tcp", loopback(k.port))
	if err != nil {
		return err
	}
	defer broker.Close()
	if err := broker.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return err
	}
	return question(broker)
}

// properties make a node that is small, and soon back after a kill -9.
func properties(dir string, port, controller int, more map[string]string) map[string]string {
	all := map[string]string{
		"process.roles":                                    "broker,controller",
		"node.id":                                          "1",
		"controller.quorum.voters":                         "1@" + loopback(controller),
		"controller.listener.names":                        "CONTROLLER",
		"listeners":                                        "PLAINTEXT://" + loopback(port) + ",CONTROLLER://" + loopback(controller),
		"advertised.listeners":                             "PLAINTEXT://" + loopback(port),
		"listener.security.protocol.map":                   "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
		"log.dirs":                                         filepath.Join(dir, "data"),
		"auto.create.topics.enable":                        "false",
		"num.partitions":                                   "1",
		"log.cleaner.dedupe.buffer.size":                   strconv.Itoa(4 << 20),
		"broker.session.timeout.ms":                        "3000",
		"broker.heartbeat.interval.ms":                     "500",
		"group.initial.rebalance.delay.ms":                 "0",
		"offsets.topic.num.partitions":                     "1",
		"offsets.topic.replication.factor":                 "1",
		"transaction.state.log.num.partitions":             "1",
		"transaction.state.log.replication.factor":         "1",
		"transaction.state.log.min.isr":                    "1",
		"share.coordinator.state.topic.num.partitions":     "1",
		"share.coordinator.state.topic.replication.factor": "1",
		"share.coordinator.state.topic.min.isr":            "1",
	}
	maps.Copy(all, more)
	return all
}

func writeKafka(dir string, properties map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var text strings.Builder
	for _, key := range slices.Sorted(maps.Keys(properties)) {
		fmt.Fprintf(&text, "%s=%s\n", key, properties[key])
	}
	if err := os.WriteFile(filepath.Join(dir, "log4j2.properties"), []byte(kafkaLogging), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "server.properties"), []byte(text.String()), 0o644)
}

// format makes the data folder, unless it is there.
func format(ctx context.Context, java, libs, dir string, users []string) error {
	if _, err := os.Stat(filepath.Join(dir, "data", "meta.properties")); err == nil {
		return nil
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	id[0] &= 0x7f        // the text must not begin with a dash, which would pass for an option
	args := []string{"-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", filepath.Join(libs, "*"), "kafka.tools.StorageTool",
		"format", "-t", base64.RawURLEncoding.EncodeToString(id), "-c", "server.properties"}
	for _, user := range users {
		args = append(args, "--add-scram", user)
	}
	tool := exec.CommandContext(ctx, java, args...)
	tool.Dir = dir
	if said, err := tool.CombinedOutput(); err != nil {
		return fmt.Errorf("format its data folder: %w\n%s", err, said)
	}
	return nil
}

const kafkaLogging = `rootLogger.level = info
rootLogger.appenderRef.stdout.ref = stdout
appender.stdout.type = Console
appender.stdout.name = stdout
appender.stdout.layout.type = PatternLayout
appender.stdout.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
`
