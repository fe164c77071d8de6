// Package webhook delivers events by HTTP POST, each as a structured CloudEvent
// in a request of its own, or several in one. Requests are signed by Standard
// Webhooks where there is a secret. An event is acknowledged by any 2xx answer;
// every other answer leaves it to be sent again, under the same webhook-id.
// Events of one query are sent one after the other, those of different queries
// beside each other.
package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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
	header    http.Header       // of every request
	keys      [][]byte          // that sign
	echoes    *strings.Replacer // hides what a receiver repeats of our credentials
	tls       sinks.TLS
	batch     Batch
	format    sinks.Format
	proxy     func(*http.Request) (*url.URL, error) // nil: that of the environment
	log       *slog.Logger

	mu     sync.Mutex
	client *http.Client // nil while there is none

	// early holds the ids of events that were acknowledged behind one that was
	// not, so that a retry of the batch does not repeat them.
	early map[string]bool
	// again holds the sequences of events of batches that are to come again; failing
	// says that the last delivery was one.
	again   map[uint64]bool
	failing bool
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
	keys, err := cfg.keys()
	if err != nil {
		return nil, fmt.Errorf("configure webhook %s: %w", name, err)
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	return &Sink{
		url:       target.String(),
		shown:     masked(target),
		userAgent: "sparkbridge/" + version,
		timeout:   cfg.Timeout,
		header:    cfg.header(),
		keys:      keys,
		echoes:    cfg.echoes(target),
		tls:       cfg.TLS,
		batch:     cfg.Batch,
		format:    cfg.Format.Or(sinks.FormatStructured),
		log:       log.With("sink", name),
		early:     map[string]bool{},
		again:     map[uint64]bool{},
	}, nil
}

// Deliver posts the events, and returns how many from the front are acknowledged.
func (s *Sink) Deliver(ctx context.Context, events []listener.Event) (int, error) {
	if s.batch.MaxEvents > 0 {
		return s.deliverBatches(ctx, events)
	}
	return s.deliverLanes(ctx, events)
}

// Close drops the idle connections.
func (s *Sink) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		s.client.CloseIdleConnections()
	}
	return nil
}

// request is what one POST carries. A repeat has the same id.
type request struct {
	id          string
	contentType string
	attributes  []sinks.Attribute // that travel as headers
	body        []byte
}

// eventRequest is the structured or binary mode of the CloudEvents binding for HTTP,
// or the payload alone.
func (s *Sink) eventRequest(e *listener.Event) request {
	r := request{id: sinks.HeaderValue(e.ID), contentType: sinks.ContentType(e), body: e.Payload}
	switch s.format {
	case sinks.FormatBinary:
		r.attributes = sinks.Attributes(e)
	case sinks.FormatStructured:
		r.contentType, r.body = sinks.StructuredContentType, sinks.Structured(e)
	}
	return r
}

// post sends one request and waits for the answer.
func (s *Sink) post(ctx context.Context, r request) error {
	client, err := s.connected()
	if err != nil {
		return fmt.Errorf("post to %s: %w", s.shown, err)
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.timeout, errTimeout)
	defer cancel()
	var shook atomic.Bool // hands, on a new connection
	traced := httptrace.WithClientTrace(limited, &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) { shook.Store(err == nil) },
	})
	req, err := http.NewRequestWithContext(traced, http.MethodPost, s.url, bytes.NewReader(r.body))
	if err != nil {
		return fmt.Errorf("make request to %s: %w", s.shown, withoutURL(err))
	}
	s.describe(req.Header, r)
	res, err := client.Do(req)
	if err != nil {
		s.distrusted(client, err)
		return s.failed(ctx, limited, err, shook.Load())
	}
	defer func() { _ = res.Body.Close() }()
	return s.answer(res)
}

// describe sets the headers of one attempt: its time counts, so that a receiver
// can refuse old requests that somebody has recorded.
func (s *Sink) describe(header http.Header, r request) {
	maps.Copy(header, s.header)
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	if r.contentType != "" {
		header.Set("Content-Type", r.contentType)
	}
	for _, a := range r.attributes {
		header.Set("ce-"+a.Name, sinks.HeaderValue(a.Value))
	}
	header.Set("User-Agent", s.userAgent)
	header.Set("webhook-id", r.id)
	header.Set("webhook-timestamp", timestamp)
	if len(s.keys) > 0 {
		header.Set("webhook-signature", signature(s.keys, r.id, timestamp, r.body))
	}
}

var errTimeout = errors.New("no answer in time")

// hungUp is what is left of a refused certificate where the connection is gone
// before its reason could be read: by TLS 1.3 a client has done its part by then.
const hungUp = "the receiver hung up after the handshake, and may refuse our certificate: set tls.cert_file and tls.key_file to one that it takes"

// failed names what ended a request without an answer; shook says that this was
// on a connection that had just been secured.
func (s *Sink) failed(ctx, limited context.Context, err error, shook bool) error {
	advice := sinks.TLSAdvice(err)
	if advice == "" && shook {
		advice = hungUp
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(context.Cause(limited), errTimeout):
		return fmt.Errorf("post event to %s: %w (%s; raise timeout if the receiver needs longer)", s.shown, errTimeout, s.timeout)
	case advice != "":
		return fmt.Errorf("post event to %s: %w; %s", s.shown, withoutURL(err), advice)
	default:
		return fmt.Errorf("post event to %s: %w", s.shown, withoutURL(err))
	}
}
