// Package nats delivers events to NATS: to JetStream, where a stream
// acknowledges each event, or to plain NATS subjects.
//
// Events travel as CloudEvents in binary mode: attributes in ce- headers, Spark's
// own bytes as the payload, and the event's id in Nats-Msg-Id too, so that a
// stream drops the repeats that fall into its duplicate window.
//
// Order within a query is kept through refusals, lost connections and changes
// of a stream's leader. Two rules do that. A connection is never reconnected: a
// lost one is replaced at the next delivery, which begins with the first event
// that was not acknowledged, so that no event can slip past an earlier one in
// between. And events of one query are sent ahead of each other's
// acknowledgement only where the stream cannot refuse one of them and take the
// next, see route.
package nats

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// Time-outs of the conversation with the server.
const (
	connectTimeout    = 3 * time.Second // per server, handshakes included
	defaultAckTimeout = 5 * time.Second // from publishing to the acknowledgement
	lookupTimeout     = 2 * time.Second // of questions about streams, which may be forbidden
	pingInterval      = 20 * time.Second
)

// Sink publishes events to one NATS system.
type Sink struct {
	cfg        Config
	name       string
	subject    *sinks.Template
	form       form
	stream     Stream // with its subjects; the zero value if none is to be made
	ackTimeout time.Duration
	log        *slog.Logger

	session *session // nil while there is no connection
}

var _ sinks.Sink = (*Sink)(nil)

// New returns a sink. It connects at the first delivery: a server that is down
// is an error of Deliver, not of New. name is how the sink is called in the
// server's list of connections and in the log.
func New(cfg Config, name string, log *slog.Logger) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	subject, err := parseSubject(cfg.Subject)
	if err != nil {
		return nil, err
	}
	headers, err := sinks.ParseHeaders(cfg.Headers, cfg.Labels)
	if err != nil {
		return nil, err
	}
	return &Sink{
		cfg: cfg, name: name, subject: subject.With(cfg.Labels), form: form{cfg.Format, headers},
		stream: cfg.Stream.over(subject), ackTimeout: defaultAckTimeout, log: log.With("sink", name),
	}, nil
}

// Deliver publishes the events in their order and waits for the acknowledgements,
// of the stream with JetStream and of the server without. It returns the number
// of events from the front that are acknowledged. It ends early with the error
// of ctx, and otherwise in bounded time: an acknowledgement that does not come
// is an error.
func (s *Sink) Deliver(ctx context.Context, events []listener.Event) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	acked, err := s.deliver(ctx, events)
	if err == nil {
		return acked, nil
	}
	if !errors.As(err, new(refusal)) && !sinks.IsPermanent(err) {
		s.drop() // what was sent and not answered must not arrive later than what comes next
	}
	if ctx.Err() != nil {
		return acked, ctx.Err()
	}
	return acked, err
}

func (s *Sink) deliver(ctx context.Context, events []listener.Event) (acked int, err error) {
	session, err := s.connected(ctx)
	if err != nil {
		return 0, err
	}
	stop := context.AfterFunc(ctx, session.dialer.cut)
	defer stop()
	for acked < len(events) && err == nil {
		var n int
		if s.cfg.JetStream {
			n, err = session.publishWindow(ctx, events[acked:])
		} else {
			n, err = session.publishAndFlush(ctx, events[acked:])
		}
		acked += n
	}
	return acked, err
}

// connected returns the session, a new one if the last has ended.
func (s *Sink) connected(ctx context.Context) (*session, error) {
	if s.session != nil && s.session.ended() != nil {
		s.drop()
	}
	if s.session == nil {
		session, err := s.connect(ctx)
		if err != nil {
			return nil, err
		}
		s.session = session
		s.log.Info("connected to nats", "server", masked(session.conn.ConnectedUrl()))
	}
	return s.session, nil
}

func (s *Sink) drop() {
	if s.session != nil {
		s.session.close()
		s.session = nil
	}
}

// Close ends the connection. All that Deliver has acknowledged is at the server.
func (s *Sink) Close() error {
	s.drop()
	return nil
}
