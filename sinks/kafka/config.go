package kafka

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// Config says where events go.
type Config struct {
	// Brokers are the addresses to ask for the cluster, one is enough.
	Brokers []string `yaml:"brokers" required:"true" example:"[localhost:9092]" doc:"Addresses, host:port, of one or more brokers; the others of the cluster are found through them."`
	// Topic is a topic's name, or a template that makes one from each event, see
	// sinks.ParseTemplate.
	Topic string `yaml:"topic" default:"spark-query-events" doc:"Topic that takes the events; may be a template with {source}, {query}, {kind}, {query_id}, {run_id} and {labels.name}."`
	// Key is a template of the record key, the query id if empty.
	Key string `yaml:"key" example:"{source}" doc:"Template of the record key, which chooses the partition; left out, it is the query id. Events of one query keep their order only where all of them have the same key."`
	// Headers are templates too.
	Headers map[string]string `yaml:"headers" doc:"Headers of your own, each a template like topic."`

	CreateTopic CreateTopic `yaml:"create_topic" doc:"How to make a topic that is missing. Without it, topics must exist."`
	TLS         sinks.TLS   `yaml:"tls" doc:"How connections to the brokers are secured; without it they are not."`
	SASL        SASL        `yaml:"sasl" doc:"The user to log in as, where the brokers want one."`

	// Format is the form of the records, binary if empty; Labels are what templates
	// know of the sources.
	Format sinks.Format `yaml:"-"`
	Labels sinks.Labels `yaml:"-"`
}

// Validate returns all that is wrong with the configuration. Each error names
// the field, its value and what would be right.
func (c Config) Validate() error {
	problems := make([]error, 0, len(c.Brokers)+5)
	if len(c.Brokers) == 0 {
		problems = append(problems, errors.New("brokers: is missing; list at least one address, such as [localhost:9092]"))
	}
	for i, broker := range c.Brokers {
		if err := validateBroker(broker); err != nil {
			problems = append(problems, fmt.Errorf("brokers[%d]: %w", i, err))
		}
	}
	_, topicErr := parseTopic(c.Topic)
	_, formErr := c.form()
	return errors.Join(append(problems, topicErr, formErr, c.CreateTopic.validate(), c.TLS.Validate(), c.validateLogin())...)
}

// CheckFiles reads the files and returns all that keeps them from being used.
func (c Config) CheckFiles() error { return c.TLS.CheckFiles() }

// Templates returns the templates of the configuration by their keys.
func (c Config) Templates() map[string]string {
	all := map[string]string{"topic": c.Topic}
	if c.Key != "" {
		all["key"] = c.Key
	}
	for name, text := range c.Headers {
		all["headers."+name] = text
	}
	return all
}

func validateBroker(broker string) error {
	host, port, err := net.SplitHostPort(broker)
	if strings.Contains(broker, "://") || err != nil || host == "" {
		return fmt.Errorf("%q is not an address; write it as host:port", broker)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return fmt.Errorf("%q has no port between 1 and 65535; Kafka's own default is 9092", broker)
	}
	return nil
}

// legalTopic is what Kafka takes as the name of a topic.
var legalTopic = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// parseTopic reads the template and tries it.
func parseTopic(text string) (*sinks.Template, error) {
	template, err := sinks.ParseTemplate(text)
	if err != nil {
		return nil, fmt.Errorf("topic: %w", err)
	}
	sample := template.Place(&listener.Event{})
	if !legalTopic.MatchString(sample) || sample == "." || sample == ".." {
		return nil, fmt.Errorf("topic: %q is not a name for a topic; use at most 249 letters, digits, dots, _ and -", text)
	}
	return template, nil
}
