package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/sinks"
)

// Stream is a stream that the sink makes when no stream takes an event's
// subject. One that is there already is used as it is.
type Stream struct {
	Name   string `yaml:"name" example:"spark" doc:"The name of the stream."`
	Create bool   `yaml:"create" default:"false" doc:"true: make the stream when no stream takes an event. One that is there is left as it is."`
	// Subjects are what it takes; where they are left out, all that the template
	// of the sink can make.
	Subjects []string      `yaml:"subjects" example:"[spark.>]" doc:"The subjects that it takes; where they are left out, all that begin as those of the sink do."`
	MaxAge   time.Duration `yaml:"max_age" default:"0s" doc:"How long it keeps events; 0s: for ever."`
	Replicas int           `yaml:"replicas" example:"3" doc:"How many servers of a cluster keep it, 1 where it is left out, 5 at most."`
}

// maxReplicas is the most that JetStream takes.
const maxReplicas = 5

// settled is how long a stream that was made may take to be known everywhere. In
// that time it is not made again.
const settled = 5 * time.Second

func (c Config) validateStream() error {
	s := c.Stream
	if s.Name == "" && !s.Create && len(s.Subjects) == 0 && s.MaxAge == 0 && s.Replicas == 0 {
		return nil
	}
	switch {
	case !s.Create:
		return errors.New("stream.create: is not true; set it, or leave stream out: the streams that are there are used anyway")
	case !c.JetStream:
		return errors.New("stream.create: there are no streams with jetstream: false; drop one of them")
	case s.Name == "":
		return errors.New("stream.name: is missing; give the stream a name, such as spark")
	case strings.ContainsAny(s.Name, " \t\r\n.*>/\\"):
		return fmt.Errorf("stream.name: %q may not hold blanks, dots, *, > and slashes; use letters, digits, _ and -", s.Name)
	case s.Replicas < 0 || s.Replicas > maxReplicas:
		return fmt.Errorf("stream.replicas: %d is none of 1 to %d", s.Replicas, maxReplicas)
	}
	return nil
}

// over returns the stream with the subjects that it is made for.
func (s Stream) over(template *sinks.Template) Stream {
	if len(s.Subjects) > 0 || !s.Create {
		return s
	}
	tokens := strings.Split(template.String(), ".")
	for i, token := range tokens {
		if strings.Contains(token, "{") {
			tokens[i] = "*"
		}
	}
	s.Subjects = []string{wide(template, strings.Join(tokens, "."))}
	return s
}

// wide is what a stream needs to take the events of all sources: everything
// behind what their subjects share, or otherwise subject.
func wide(template *sinks.Template, subject string) string {
	shared, _, varies := strings.Cut(template.String(), "{")
	if end := strings.LastIndexByte(shared, '.'); varies && end > 0 {
		return shared[:end] + ".>"
	}
	return subject
}

// mayMake tells whether to make the stream now.
func (p *session) mayMake() bool {
	return p.stream.Create && time.Since(p.made) > settled
}

// makeStream makes the configured stream for an event whose subject no stream takes.
func (p *session) makeStream(ctx context.Context, subject string) error {
	if !slices.ContainsFunc(p.stream.Subjects, func(pattern string) bool { return covers(pattern, subject) }) {
		return fmt.Errorf("publish to %s: no stream takes this subject, nor would %s (%s); add it to stream.subjects",
			subject, p.stream.Name, strings.Join(p.stream.Subjects, ", "))
	}
	ctx, cancel := context.WithTimeout(ctx, p.ackTimeout)
	defer cancel()
	_, err := p.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: p.stream.Name, Subjects: p.stream.Subjects, MaxAge: p.stream.MaxAge, Replicas: max(1, p.stream.Replicas),
		Description: "events of Spark Structured Streaming queries",
	})
	if err != nil {
		return p.notMade(subject, err)
	}
	p.made = time.Now()
	return nil
}

func (p *session) notMade(subject string, err error) error {
	next := "correct stream, or make one that takes " + subject
	switch {
	case p.ended() != nil:
		err, next = p.ended(), "it is tried again"
	case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
		next = "a stream of this name is there and does not take the subject: add it there, or choose another name"
	case errors.Is(err, context.DeadlineExceeded): // a request that is forbidden gets no answer
		next = "no answer: allow this user to publish to $JS.API.STREAM.CREATE." + p.stream.Name + ", or make the stream yourself"
	}
	return fmt.Errorf("create stream %s for %s: %w; %s", p.stream.Name, subject, err, next)
}
