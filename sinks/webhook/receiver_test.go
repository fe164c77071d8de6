package webhook_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"sparkbridge/sinks"
	"sparkbridge/sinks/sinktest"
	"sparkbridge/sinks/webhook"
)

var quiet = slog.New(slog.DiscardHandler)

// receiver is a real HTTP server that keeps what is posted to it, by those whom it knows:
// by TLS with a certificate, a token and a signature. It answers at once and reads the
// events only when it is asked for them.
type receiver struct {
	*httptest.Server
	authority *sinktest.Authority
	signed    *standardwebhooks.Webhook

	mu       sync.Mutex
	posts    []post // not read yet
	strange  int    // requests of those whom it does not know
	batch    bool   // each has several events
	messages []sinktest.Message
}

type post struct {
	header http.Header
	body   []byte
}

var receiverKey = secret("k", 32)

func newReceiver(t testing.TB) *receiver {
	t.Helper()
	signed, err := standardwebhooks.NewWebhook(receiverKey.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{authority: sinktest.NewAuthority(t), signed: signed}
	r.Server = httptest.NewUnstartedServer(r)
	r.TLS = r.authority.Server(t, "hooks.test")
	r.TLS.ClientAuth = tls.RequireAndVerifyClientCert
	r.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	r.StartTLS()
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

// known is what a sink needs to be known to the receiver, at an address.
func (r *receiver) known(t testing.TB, address string) webhook.Config {
	return webhook.Config{
		URL: "https://" + address + "/events", Timeout: 2 * time.Second,
		TLS: r.authority.Client(t, "bridge"), Bearer: "t0k", Secret: receiverKey,
	}
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // the client was cut off: not received
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if req.Header.Get("Authorization") != "Bearer t0k" || r.signed.Verify(body, req.Header) != nil {
		r.strange++
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	r.posts = append(r.posts, post{req.Header, body})
	w.WriteHeader(http.StatusNoContent)
}

func (r *receiver) received(context.Context) ([]sinktest.Message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.strange > 0 {
		return nil, fmt.Errorf("%d requests without a valid token and signature", r.strange)
	}
	for _, p := range r.posts {
		each := []post{p}
		if r.batch {
			var err error
			if each, err = split(p); err != nil {
				return nil, err
			}
		}
		for _, p := range each {
			m, err := read(p)
			if err != nil {
				return nil, err
			}
			r.messages = append(r.messages, m)
		}
	}
	r.posts = nil
	return slices.Clone(r.messages), nil
}

// split makes of a batch what its events would be in requests of their own.
func split(p post) ([]post, error) {
	var all []json.RawMessage
	if err := json.Unmarshal(p.body, &all); err != nil {
		return nil, fmt.Errorf("read batch: %w", err)
	}
	each := make([]post, len(all))
	for i, body := range all {
		each[i] = post{http.Header{"Content-Type": {sinks.StructuredContentType}}, body}
	}
	return each, nil
}

// read takes a structured CloudEvent apart without re-encoding its data.
func read(p post) (sinktest.Message, error) {
	m := sinktest.Message{Attributes: map[string]string{}, IDs: p.header["Webhook-Id"]}
	if got := p.header.Get("Content-Type"); got != sinks.StructuredContentType {
		return m, fmt.Errorf("content type %q", got)
	}
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(p.body, &doc); err != nil {
		return m, fmt.Errorf("read body: %w", err)
	}
	for name, value := range doc {
		var text string
		switch {
		case name == "data":
			_, data, _ := bytes.Cut(p.body, []byte(`"data":`))
			m.Payload = data[:len(data)-1]
		case name == "data_base64":
			_ = json.Unmarshal(value, &text)
			m.Payload, _ = base64.StdEncoding.DecodeString(text)
		case json.Unmarshal(value, &text) == nil:
			m.Attributes[name] = text
		default:
			m.Attributes[name] = string(value)
		}
	}
	m.ContentType = m.Attributes["datacontenttype"]
	delete(m.Attributes, "datacontenttype")
	m.PartitionKey = m.Attributes["partitionkey"]
	return m, nil
}

func TestConformance(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Harness { return newReceiver(t).harness(t, webhook.Batch{}) })
}

func TestConformanceOfBatches(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Harness {
		r := newReceiver(t)
		r.batch = true
		return r.harness(t, webhook.Batch{MaxEvents: 100})
	})
}

func (r *receiver) harness(t *testing.T, batch webhook.Batch) sinktest.Harness {
	proxy := sinktest.NewProxy(t, r.Listener.Addr().String())
	cfg := r.known(t, proxy.Addr())
	cfg.Batch = batch
	return sinktest.Harness{
		New:      func(t testing.TB) sinks.Sink { return newSink(t, cfg) },
		Received: r.received,
		Stop:     proxy.Stop, Start: proxy.Start,
		Freeze: proxy.Freeze, Thaw: proxy.Thaw,
		Slow: proxy.Slow,
	}
}

func newSink(t testing.TB, cfg webhook.Config) *webhook.Sink {
	t.Helper()
	sink, err := webhook.New(cfg, "pager", "1.2.3", quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sink.Close() })
	return sink
}
