package webhook

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"
)

// connected returns the client, a new one if there is none. The files of the
// configuration are read then.
func (s *Sink) connected() (*http.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	transport := newTransport()
	if s.proxy != nil {
		transport.Proxy = s.proxy
	}
	if s.tls.Wanted() {
		config, err := s.tls.Config()
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = config
	}
	s.client = &http.Client{Transport: transport, CheckRedirect: doNotFollow}
	return s.client, nil
}

// distrusted drops a client that could not trust the receiver: the file of
// authorities may have changed since it was read.
func (s *Sink) distrusted(client *http.Client, err error) {
	if !errors.As(err, new(*tls.CertificateVerificationError)) {
		return
	}
	client.CloseIdleConnections()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == client {
		s.client = nil
	}
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
