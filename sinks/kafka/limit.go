package kafka

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/segmentio/kafka-go"
)

const (
	// defaultLimit is what a topic takes where nobody says otherwise: brokers
	// have message.max.bytes at 1,048,588 by default.
	defaultLimit = 1_048_588
	// largestLimit bounds what is held in memory for one round.
	largestLimit = 64 << 20
	// smallestLimit is the least that events are cut to.
	smallestLimit = 2 << 10

	limitAge  = 5 * time.Minute // how long an answer counts
	maxLimits = 4096            // how many are remembered: topics may be made from query names
)

// limits knows how many bytes the records of one batch may take, topic by topic.
type limits struct {
	client *kafka.Client
	known  map[string]limit
}

type limit struct {
	bytes int
	until time.Time
}

func newLimits(client *kafka.Client) *limits {
	return &limits{client: client, known: make(map[string]limit)}
}

// of returns the limit of a topic. It asks the broker when it does not know; a
// broker that may not tell leaves the default. An error says that the topic does
// not exist or that no broker can be reached.
func (l *limits) of(ctx context.Context, topic string) (int, error) {
	if known, found := l.known[topic]; found && time.Now().Before(known.until) {
		return known.bytes, nil
	}
	if err := l.find(ctx, topic); err != nil {
		return 0, err
	}
	bytes, err := l.ask(ctx, topic)
	if err != nil {
		return 0, err
	}
	l.set(topic, bytes)
	return bytes, nil
}

// find looks the topic up in what the writer knows of the cluster. Only this
// tells why nothing is known.
func (l *limits) find(ctx context.Context, topic string) error {
	answer, err := l.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	for _, found := range answer.Topics {
		if found.Error != nil {
			return found.Error
		}
	}
	return nil
}

func (l *limits) set(topic string, bytes int) {
	if len(l.known) >= maxLimits {
		clear(l.known)
	}
	l.known[topic] = limit{bytes, time.Now().Add(limitAge)}
}

// ask reads max.message.bytes, which counts the batch with its header.
func (l *limits) ask(ctx context.Context, topic string) (int, error) {
	const setting = "max.message.bytes"
	answer, err := l.client.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{setting},
		}},
	})
	if err != nil {
		return 0, err
	}
	bytes := defaultLimit
	for _, resource := range answer.Resources {
		if errors.Is(resource.Error, kafka.UnknownTopicOrPartition) || errors.Is(resource.Error, kafka.InvalidTopic) {
			return 0, resource.Error
		}
		for _, entry := range resource.ConfigEntries {
			if n, err := strconv.Atoi(entry.ConfigValue); err == nil && entry.ConfigName == setting {
				bytes = n
			}
		}
	}
	return min(bytes, largestLimit) - batchOverhead, nil
}

// lower reacts to a batch that was too large for its topic: it asks again, and
// where that explains nothing halves what was tried. It returns false when
// there is nothing to gain by cutting further.
func (l *limits) lower(ctx context.Context, round []kafka.Message, topic string) bool {
	tried := 0
	for i := range round {
		if round[i].Topic == topic {
			tried += recordSize(&round[i])
		}
	}
	bytes, err := l.ask(ctx, topic)
	if err != nil || bytes >= tried {
		bytes = tried / 2
	}
	l.set(topic, bytes)
	return bytes >= smallestLimit
}

// forget makes every topic be asked for again: one of them may have gone.
func (l *limits) forget() { clear(l.known) }
