package nats

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/sinks"
)

// Check connects and asks whether the events of the sources would be taken. It
// publishes nothing and makes no stream; whether the user may publish is told by
// the server only then. It ends with ctx at the latest.
func (s *Sink) Check(ctx context.Context, sources []string) []sinks.Finding {
	session, err := s.connect(ctx)
	if err != nil {
		return []sinks.Finding{sinks.Fails("server", s.unreachable(ctx, err))}
	}
	defer session.close()
	stop := context.AfterFunc(ctx, session.dialer.cut)
	defer stop()
	found := []sinks.Finding{sinks.Works("server", fmt.Sprintf("%s answers (NATS %s) and takes messages of up to %d bytes; longer events are cut",
		masked(session.conn.ConnectedUrl()), session.conn.ConnectedServerVersion(), session.conn.MaxPayload()))}
	if !s.cfg.JetStream {
		return append(found, sinks.Works("subject", strings.Join(s.subjects(sources), ", ")+" (jetstream: false): nothing is kept for subscribers that are away"))
	}
	for _, subject := range s.subjects(sources) {
		answer, final := session.checkStream(ctx, subject, wide(s.subject, subject))
		found = append(found, answer)
		if final {
			break
		}
	}
	return found
}

func (s *Sink) unreachable(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("connect to %s: no answer in time; see that a NATS server is at url, and that nothing on the way drops the connection", masked(s.cfg.URL))
	case unreached(err):
		return fmt.Errorf("%w; start the server, or set url to where it is", err)
	default:
		return err
	}
}

// subjects are the subjects of the events of the sources, with a wildcard in the
// place of what only an event tells.
func (s *Sink) subjects(sources []string) []string {
	patterns := s.subject.Patterns(sources)
	for i, pattern := range patterns {
		tokens := strings.Split(pattern, ".")
		for j, token := range tokens {
			if strings.Contains(token, "*") {
				tokens[j] = "*"
			}
		}
		patterns[i] = strings.Join(tokens, ".")
	}
	return patterns
}

// checkStream asks which streams take a subject. final says that the answer is the
// same for all subjects; wide is what to give a stream that is missing.
func (p *session) checkStream(ctx context.Context, subject, wide string) (answer sinks.Finding, final bool) {
	const about = "stream"
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	list := p.js.ListStreams(ctx, jetstream.WithStreamListSubject(subject))
	var streams []*jetstream.StreamInfo
	for info := range list.Info() {
		streams = append(streams, info)
	}
	switch err := list.Err(); {
	case disabled(err):
		return sinks.Fails(about, fmt.Errorf("the server has no JetStream for this user (%w); enable it, or set jetstream: false", err)), true
	case err != nil && p.ended() == nil: // a question that is forbidden gets no answer
		return sinks.Untold(about, fmt.Sprintf("the server does not tell which streams there are (%v); whether one takes %s shows at the first event", err, subject)), true
	case err != nil:
		return sinks.Fails(about, fmt.Errorf("ask for streams: %w", p.ended())), true
	case len(streams) == 0 && p.stream.Create:
		return sinks.Untold(about, fmt.Sprintf("no stream takes %s yet; %s is made at the first event, for %s", subject, p.stream.Name, strings.Join(p.stream.Subjects, ", "))), false
	case len(streams) == 0:
		return sinks.Fails(about, fmt.Errorf("no stream takes %s; create one, such as: nats stream add spark --subjects '%s' --defaults, or set jetstream: false", subject, wide)), false
	}
	return taking(about, subject, streams), false
}

func disabled(err error) bool {
	return errors.Is(err, jetstream.ErrJetStreamNotEnabled) || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) ||
		errors.Is(err, nats.ErrNoResponders)
}

// taking tells a stream that takes all of a subject from those that take a part.
func taking(about, subject string, streams []*jetstream.StreamInfo) sinks.Finding {
	var parts []string
	for _, stream := range streams {
		for _, pattern := range stream.Config.Subjects {
			if covers(pattern, subject) {
				return sinks.Works(about, fmt.Sprintf("%s takes %s", stream.Config.Name, subject))
			}
		}
		parts = append(parts, stream.Config.Name+" ("+strings.Join(stream.Config.Subjects, ", ")+")")
	}
	return sinks.Untold(about, fmt.Sprintf("of %s only parts are taken, by %s; an event that none takes waits, and its query with it, and becomes a dead letter after give_up if others go through, so give one of them %[1]s", subject, strings.Join(parts, ", ")))
}

// covers says that every subject that subject stands for matches pattern.
func covers(pattern, subject string) bool {
	wanted := strings.Split(subject, ".")
	for i, token := range strings.Split(pattern, ".") {
		switch {
		case token == ">":
			return i < len(wanted)
		case i >= len(wanted), token != "*" && token != wanted[i]:
			return false
		}
	}
	return strings.Count(pattern, ".") == strings.Count(subject, ".")
}
