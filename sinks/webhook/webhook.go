// Package webhook delivers events by HTTP POST, each as a structured CloudEvent
// in a request of its own. An event is acknowledged by any 2xx answer; every
// other answer leaves it to be sent again, under the same webhook-id. Events of
// one query are sent one after the other, those of different queries beside each
// other.
package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

var _ sinks.Sink = (*Sink)(nil)

// Sink posts events to one URL. It connects when it delivers.
type Sink struct {
	url       string
	shown     string // url without secrets
	userAgent string
	timeout   time.Duration
	client    *http.Client
	transport *http.Transport
	log       *slog.Logger

	// early holds the ids of events that were acknowledged behind one that was
	// not, so that a retry of the batch does not repeat them.
	early map[string]bool
}

// New makes a sink; version is the program's, for the User-Agent. It returns the
// error of cfg.Validate, and never tries to connect.
func New(cfg Config, name, version string, log *slog.Logger) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure webhook %s: %w", name, err)
	}
	target, err := cfg.parse()
	if err != nil {
		return nil, fmt.Errorf("configure webhook %s: %w", name, err)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	transport := newTransport()
	return &Sink{
		url:       target.String(),
		shown:     masked(target),
		userAgent: "sparkbridge/" + version,
		timeout:   cfg.Timeout,
		client:    &http.Client{Transport: transport, CheckRedirect: doNotFollow},
		transport: transport,
		log:       log.With("sink", name),
		early:     map[string]bool{},
	}, nil
}

// newTransport is a transport of the sink's own, so that closing it closes
// nobody else's connections.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		MaxIdleConnsPerHost: maxLanes,
		IdleConnTimeout:     90 * time.Second,
	}
}

// doNotFollow makes a redirect an answer like any other: most clients would
// repeat the POST as a GET, without the event.
func doNotFollow(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// Close drops the idle connections.
func (s *Sink) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

// post sends one event and waits for the answer.
func (s *Sink) post(ctx context.Context, e *listener.Event) error {
	limited, cancel := context.WithTimeoutCause(ctx, s.timeout, errTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(limited, http.MethodPost, s.url, bytes.NewReader(sinks.Structured(e)))
	if err != nil {
		return fmt.Errorf("make request to %s: %w", s.shown, withoutURL(err))
	}
	req.Header.Set("Content-Type", sinks.StructuredContentType)
	req.Header.Set("User-Agent", s.userAgent)
	req.Header.Set("webhook-id", sinks.HeaderValue(e.ID))
	req.Header.Set("webhook-timestamp", strconv.FormatInt(time.Now().Unix(), 10))
	res, err := s.client.Do(req)
	if err != nil {
		return s.failed(ctx, limited, err)
	}
	defer func() { _ = res.Body.Close() }()
	return s.answer(res)
}

var errTimeout = errors.New("no answer in time")

// failed names what ended a request without an answer.
func (s *Sink) failed(ctx, limited context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(limited), errTimeout):
		return fmt.Errorf("post event to %s: %w (%s; raise timeout if the receiver needs longer)", s.shown, errTimeout, s.timeout)
	default:
		return fmt.Errorf("post event to %s: %w", s.shown, withoutURL(err))
	}
}
