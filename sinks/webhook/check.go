package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"sparkbridge/sinks"
)

// Check connects to the receiver, by TLS where the address asks for it, and hangs
// up: whether the receiver acknowledges events shows only when one is posted. It
// ends with ctx, or after the time-out of a request.
func (s *Sink) Check(ctx context.Context, _ []string) []sinks.Finding {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	target, err := url.Parse(s.url)
	if err != nil {
		return []sinks.Finding{sinks.Fails("server", fmt.Errorf("read url: %w", withoutURL(err)))}
	}
	client, err := s.connected()
	if err != nil {
		return []sinks.Finding{sinks.Fails("server", err)}
	}
	transport := client.Transport.(*http.Transport)
	proxy, err := transport.Proxy(&http.Request{URL: target})
	if err != nil {
		return []sinks.Finding{sinks.Fails("proxy", fmt.Errorf("find the proxy for %s: %w; correct HTTPS_PROXY or HTTP_PROXY", s.shown, err))}
	}
	if proxy != nil {
		if err := reach(ctx, transport, proxy); err != nil {
			return []sinks.Finding{sinks.Fails("proxy", fmt.Errorf("reach the proxy %s: %w; correct HTTPS_PROXY or HTTP_PROXY", masked(proxy), err))}
		}
		return []sinks.Finding{sinks.Untold("proxy", fmt.Sprintf("%s is reachable; whether %s is shows at the first event", masked(proxy), s.shown))}
	}
	if err := reach(ctx, transport, target); err != nil {
		s.distrusted(client, err)
		return []sinks.Finding{sinks.Fails("server", fmt.Errorf("reach %s: %w; %s", s.shown, err, nextStep(err)))}
	}
	return []sinks.Finding{sinks.Works("server", s.shown+" is reachable; nothing was sent")}
}

func nextStep(err error) string {
	if advice := sinks.TLSAdvice(err); advice != "" {
		return advice
	}
	return "start the receiver, or correct url"
}

// reach connects to the host of an address, shakes hands where it is https, and
// hangs up.
func reach(ctx context.Context, transport *http.Transport, to *url.URL) error {
	port := to.Port()
	if port == "" {
		port = to.Scheme // a service name, which the dialer knows
	}
	conn, err := transport.DialContext(ctx, "tcp", net.JoinHostPort(to.Hostname(), port))
	if err != nil {
		return err
	}
	if to.Scheme != "https" {
		return conn.Close()
	}
	config := transport.TLSClientConfig.Clone()
	if config == nil {
		config = &tls.Config{}
	}
	if config.ServerName == "" {
		config.ServerName = to.Hostname()
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake's error says more
		return err
	}
	return secure.Close()
}
