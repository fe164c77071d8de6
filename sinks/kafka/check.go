package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"sparkbridge/sinks"
)

const (
	shownTopics = 5 // how many topics are named where many match

	// How long a partition may be without a leader that answers, and how often it is
	// asked meanwhile.
	leaderPatience = 2*metadataTTL + time.Second
	leaderPause    = 200 * time.Millisecond
)

// Check asks the brokers for the topics that the events of the sources go to, and
// the leader of each of their partitions for its end. It writes nothing and makes
// no topic. It ends with ctx at the latest.
func (s *Sink) Check(ctx context.Context, sources []string) []sinks.Finding {
	cluster, err := s.limits.client.Metadata(ctx, &kafka.MetadataRequest{})
	if err != nil {
		return []sinks.Finding{sinks.Fails("broker", s.unreachable(err))}
	}
	found := []sinks.Finding{sinks.Works("broker", fmt.Sprintf("%s answers for a cluster of %d", s.brokers(), len(cluster.Brokers)))}
	for _, pattern := range s.topic.Patterns(sources) {
		switch {
		case !strings.Contains(pattern, "*"):
			found = append(found, s.checkTopic(ctx, pattern))
		case s.cfg.CreateTopic.Partitions > 0:
			found = append(found, sinks.Untold("topic", fmt.Sprintf("those like %s are made as events name them", pattern)))
		default:
			found = append(found, matching(pattern, cluster.Topics))
		}
	}
	return found
}

func (s *Sink) unreachable(err error) error {
	next := s.accessStep(err)
	switch {
	case next != "":
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("ask %s for the cluster: no answer in time; see that a broker is there, and that nothing on the way drops the connection", s.brokers())
	case errors.As(err, new(net.Error)) && !errors.As(err, new(*sinks.FileError)): // which looks like one of the network
		next = "start the broker, or set brokers to where it listens"
	default:
		return fmt.Errorf("ask %s for the cluster: %w", s.brokers(), err)
	}
	return fmt.Errorf("ask %s for the cluster: %w; %s", s.brokers(), denied(err), next)
}

// matching tells which topics there are for events that name theirs themselves.
func matching(pattern string, topics []kafka.Topic) sinks.Finding {
	const about = "topic"
	var names []string
	for _, topic := range topics {
		// A topic has no character that path.Match gives a meaning.
		if match, err := path.Match(pattern, topic.Name); match && err == nil && !topic.Internal {
			names = append(names, topic.Name)
		}
	}
	if len(names) == 0 {
		return sinks.Fails(about, fmt.Errorf("there is no topic like %s; create those of your queries, or set create_topic", pattern))
	}
	slices.Sort(names)
	shown := strings.Join(names[:min(len(names), shownTopics)], ", ")
	if more := len(names) - shownTopics; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return sinks.Untold(about, fmt.Sprintf("like %s there are %s; an event whose topic is missing waits, and its query with it; if others go through, it becomes a dead letter after give_up", pattern, shown))
}

// checkTopic asks for one topic, and then its leaders, which may be elsewhere than
// the brokers that are configured.
func (s *Sink) checkTopic(ctx context.Context, name string) sinks.Finding {
	const about = "topic"
	answer, err := s.limits.client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{name}})
	if err == nil && len(answer.Topics) != 1 {
		err = kafka.UnknownTopicOrPartition
	}
	if err == nil {
		err = answer.Topics[0].Error
	}
	if errors.Is(err, kafka.UnknownTopicOrPartition) && s.cfg.CreateTopic.Partitions > 0 {
		return sinks.Untold(about, fmt.Sprintf("%s is not there yet; it is made at the first event, with %d partitions", name, s.cfg.CreateTopic.Partitions))
	}
	if err != nil {
		return sinks.Fails(about, s.explain(name, err))
	}
	partitions := answer.Topics[0].Partitions
	if err := s.askLeaders(ctx, name, partitions); err != nil {
		return sinks.Fails(about, fmt.Errorf("ask the leaders of topic %s: %w; see that the brokers of the cluster (%s) can be reached from here under the addresses that they advertise",
			name, err, addresses(answer.Brokers)))
	}
	text := fmt.Sprintf("%s is there, with %d partitions whose leaders answer", name, len(partitions))
	if bytes, err := s.limits.ask(ctx, name); err == nil { // a broker may keep its settings to itself
		text += fmt.Sprintf(", for records of up to %d bytes; longer events are cut", bytes)
	}
	return sinks.Works(about, text)
}

// askLeaders asks the leaders again while they change, which a new topic's do too.
func (s *Sink) askLeaders(ctx context.Context, topic string, partitions []kafka.Partition) error {
	ctx, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	for {
		err := s.askLeadersOnce(ctx, topic, partitions)
		var told kafka.Error
		if !errors.As(err, &told) || !told.Temporary() {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(leaderPause):
		}
	}
}

// askLeadersOnce asks the leader of each partition for its end.
func (s *Sink) askLeadersOnce(ctx context.Context, topic string, partitions []kafka.Partition) error {
	ends := make([]kafka.OffsetRequest, 0, len(partitions))
	for _, p := range partitions {
		if p.Error != nil {
			return fmt.Errorf("partition %d: %w", p.ID, p.Error)
		}
		ends = append(ends, kafka.LastOffsetOf(p.ID))
	}
	answer, err := s.limits.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: ends}})
	if err != nil {
		return err
	}
	for _, p := range answer.Topics[topic] {
		if p.Error != nil {
			return fmt.Errorf("partition %d: %w", p.Partition, p.Error)
		}
	}
	return nil
}

func addresses(brokers []kafka.Broker) string {
	all := make([]string, 0, len(brokers))
	for _, b := range brokers {
		all = append(all, fmt.Sprintf("%s:%d", b.Host, b.Port))
	}
	return strings.Join(all, ",")
}
