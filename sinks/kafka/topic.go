package kafka

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/segmentio/kafka-go"
)

// CreateTopic is how a topic is made that is missing. The zero value makes none.
type CreateTopic struct {
	Partitions int `yaml:"partitions" example:"6" doc:"How many partitions a topic gets that is missing. Events of one query stay in one partition."`
	// ReplicationFactor is 0 for the broker's own default.
	ReplicationFactor int `yaml:"replication_factor" example:"3" doc:"How many brokers keep each partition; the default of the brokers where it is left out."`
}

func (c CreateTopic) validate() error {
	switch {
	case c.Partitions == 0 && c.ReplicationFactor != 0:
		return errors.New("create_topic.partitions: is missing; set it to the number of partitions of a new topic")
	case c.Partitions < 0 || c.Partitions > math.MaxInt32:
		return fmt.Errorf("create_topic.partitions: %d is no number of partitions; use 1 or more", c.Partitions)
	case c.ReplicationFactor < 0 || c.ReplicationFactor > math.MaxInt16:
		return fmt.Errorf("create_topic.replication_factor: %d is no number of brokers; use 1 or more, or leave it out", c.ReplicationFactor)
	}
	return nil
}

// limit returns how much a topic takes, and makes the topic if it is missing and
// that is wanted.
func (s *Sink) limit(ctx context.Context, topic string) (int, error) {
	bytes, err := s.limits.of(ctx, topic)
	if s.cfg.CreateTopic.Partitions == 0 || !errors.Is(err, kafka.UnknownTopicOrPartition) {
		return bytes, err
	}
	if err := s.createTopic(ctx, topic); err != nil {
		return 0, fmt.Errorf("create the topic: %w", err)
	}
	return s.limits.of(ctx, topic)
}

// createTopic returns when the client library has seen the topic, or in bounded
// time: it may be known to some brokers later than to others.
func (s *Sink) createTopic(ctx context.Context, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, s.writer.WriteTimeout)
	defer cancel()
	config := kafka.TopicConfig{Topic: topic, NumPartitions: s.cfg.CreateTopic.Partitions, ReplicationFactor: s.cfg.CreateTopic.ReplicationFactor}
	if config.ReplicationFactor == 0 {
		config.ReplicationFactor = -1 // the default of the brokers, as in Kafka's own protocol
	}
	answer, err := s.limits.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{config}})
	if err != nil {
		return err
	}
	if err := answer.Errors[topic]; err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
		return err
	}
	s.log.Info("topic created", "topic", topic, "partitions", config.NumPartitions)
	return nil
}
