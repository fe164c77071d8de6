package connect

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"
)

// TLS says how the connections to a server are secured. It must be comparable: sessions
// share a connection only where theirs are equal.
type TLS interface {
	// Config is the configuration of one connection. It is asked for each, so that
	// files which were renewed are taken. Without a ServerName the host is the name.
	Config() (*tls.Config, error)
	// Advice is what to do about an error of a connection that was not established,
	// empty where there is nothing to say.
	Advice(err error) string
}

// WithTLS is the remote with TLS on, secured by t. It is an error where the connection
// string says that there must be none.
func (r Remote) WithTLS(t TLS) (Remote, error) {
	if r.sslWritten && !r.UseSSL {
		return Remote{}, &RemoteError{Part: "use_ssl", Value: "false", Problem: "contradicts tls, which asks for TLS", Next: "leave use_ssl out, or take tls out"}
	}
	r.UseSSL, r.TLS = true, t
	return r, nil
}

// systemTLS trusts whom this machine trusts.
type systemTLS struct{}

func (systemTLS) Config() (*tls.Config, error) { return &tls.Config{MinVersion: tls.VersionTLS12}, nil }
func (systemTLS) Advice(error) string          { return "" }

// reasonTime bounds the wait for the reason of a connection that has broken already.
const reasonTime = time.Second

// secured shakes hands for gRPC.
type secured struct {
	credentials.TransportCredentials // a server's part, and the name of the protocol
	tls                              TLS
}

func newSecured(t TLS) credentials.TransportCredentials {
	return secured{credentials.NewTLS(nil), t}
}

func (s secured) Clone() credentials.TransportCredentials { return newSecured(s.tls) }

// ClientHandshake takes the configuration as it is now. What gRPC makes of an error is
// text, so the advice has to be in it.
func (s secured) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := s.tls.Config()
	if err != nil {
		return nil, nil, err
	}
	if config.ServerName != "" {
		authority = config.ServerName
	}
	conn, info, err := credentials.NewTLS(config).ClientHandshake(ctx, authority, raw)
	if err != nil {
		return nil, nil, advised(s.tls, err)
	}
	return &greeted{Conn: conn, tls: s.tls}, info, nil
}

func advised(t TLS, err error) error {
	if next := t.Advice(err); next != "" {
		return fmt.Errorf("%w; %s", err, next)
	}
	return err
}

// greeted is a connection on which the server may not have said a word yet: by TLS 1.3
// a client has done its part before its certificate is refused.
type greeted struct {
	net.Conn
	tls   TLS
	heard atomic.Bool
}

// Read is Conn's, with advice where the server ends the connection without a word.
func (g *greeted) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	if n > 0 {
		g.heard.Store(true)
	}
	if err != nil && !g.heard.Load() {
		err = advised(g.tls, err)
	}
	return n, err
}

// Write is Conn's. It may be the first to notice that the server has hung up, and knows
// no reason, which waits to be read then.
func (g *greeted) Write(p []byte) (int, error) {
	n, err := g.Conn.Write(p)
	if err == nil || g.heard.Load() {
		return n, err
	}
	_ = g.SetReadDeadline(time.Now().Add(reasonTime)) // fails on a closed connection, as reading does
	if _, reason := g.Conn.Read(make([]byte, 1)); reason != nil && g.tls.Advice(reason) != "" {
		err = reason
	}
	return n, advised(g.tls, err)
}
