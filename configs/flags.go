package configs

import (
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"sparkbridge/connect"
	"sparkbridge/sinks/kafka"
	"sparkbridge/sinks/nats"
	"sparkbridge/sinks/webhook"
)

// Flags is what a configuration without a file is made of.
type Flags struct {
	Remote  string   // connection string; SPARK_REMOTE where it is empty
	NATS    []string // URLs
	Kafka   []string // broker[,broker…][/topic]
	Webhook []string // URLs
	Journal string   // folder, empty for the default
}

// The environment variables that Spark's own clients read.
const (
	envRemote = "SPARK_REMOTE"
	envToken  = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
	envUser   = "SPARK_USER"
)

// flagSource names the one source of a configuration without a file.
const flagSource = "default"

// FromFlags makes a configuration of one source and a sink for each flag, and
// checks it as a file is checked. As in Spark's own clients, SPARK_REMOTE,
// SPARK_CONNECT_AUTHENTICATE_TOKEN and SPARK_USER fill in what is not said. The
// error is an Errors that names flags and variables.
func FromFlags(f Flags, env Environment) (*Config, error) {
	p := newProblems("")
	p.flags["sources"] = "--remote"
	p.flags["sinks"] = "--nats, --kafka or --webhook"
	p.flags["journal.dir"] = "--journal"
	cfg := defaults()
	if f.Journal != "" {
		cfg.Journal.Dir = f.Journal
	}
	cfg.addFlagSource(p, f.Remote, env)
	cfg.addFlagSinks(p, f)
	cfg.validate(p)
	if err := p.err(); err != nil {
		return nil, err
	}
	return cfg, nil
}

// SourceOf makes one source of a connection string, with its defaults and what the
// environment fills in, and checks it. The error is an Errors.
func SourceOf(remote string, env Environment) (Source, error) {
	p := newProblems("")
	p.flags["sources"] = "--remote"
	cfg := defaults()
	cfg.addFlagSource(p, remote, env)
	cfg.checkSources(p)
	if err := p.err(); err != nil {
		return Source{}, err
	}
	return cfg.Sources[0], nil
}

func (c *Config) addFlagSource(p *problems, remote string, env Environment) {
	if remote == "" {
		remote, _ = env.Lookup(envRemote)
		p.flags["sources[0].remote"] = envRemote
	}
	if remote == "" {
		return
	}
	// What cannot be parsed is left to the checks, which say why.
	parsed, _ := connect.ParseRemote(remote)
	if user, _ := env.Lookup(envUser); user != "" && parsed.Host != "" && parsed.UserID == "" {
		remote = appendParameter(remote, "user_id", user)
	}
	var s Source
	setDefaults(reflect.ValueOf(&s).Elem())
	s.Name, s.Remote = flagSource, ConnectionString(remote)
	if token, _ := env.Lookup(envToken); parsed.Token == "" {
		s.Token = Secret(token)
	}
	c.Sources = append(c.Sources, s)
}

// appendParameter adds a parameter to a connection string that can be parsed.
func appendParameter(remote, name, value string) string {
	remote = strings.TrimRight(remote, ";")
	if !strings.Contains(strings.TrimPrefix(remote, "sc://"), "/") {
		remote += "/"
	}
	return remote + ";" + name + "=" + strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}

func (c *Config) addFlagSinks(p *problems, f Flags) {
	for _, address := range f.NATS {
		config := withDefaults[nats.Config]()
		config.URL = address
		c.addFlagSink(p, "nats", Sink{NATS: config})
	}
	for _, text := range f.Kafka {
		config := withDefaults[kafka.Config]()
		brokers, topic, hasTopic := strings.Cut(text, "/")
		config.Brokers = strings.Split(brokers, ",")
		if hasTopic {
			config.Topic = topic
		}
		c.addFlagSink(p, "kafka", Sink{Kafka: config})
	}
	for _, address := range f.Webhook {
		config := withDefaults[webhook.Config]()
		config.URL = address
		c.addFlagSink(p, "webhook", Sink{Webhook: config})
	}
}

// addFlagSink adds a sink named after its kind, from the second on with a number.
// The names stay the same from start to start: the journal knows sinks by them.
func (c *Config) addFlagSink(p *problems, kind string, s Sink) {
	setDefaults(reflect.ValueOf(&s).Elem())
	s.Name = kind
	for n := 2; c.hasSink(s.Name); n++ {
		s.Name = kind + "-" + strconv.Itoa(n)
	}
	p.flags[index("sinks", len(c.Sinks))] = "--" + kind
	c.Sinks = append(c.Sinks, s)
}

func (c *Config) hasSink(name string) bool {
	for i := range c.Sinks {
		if c.Sinks[i].Name == name {
			return true
		}
	}
	return false
}

func withDefaults[T any]() *T {
	config := new(T)
	setDefaults(reflect.ValueOf(config).Elem())
	return config
}
