package kafka

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"

	"sparkbridge/sinks"
)

// dialer opens the connections of a sink, secured where that is asked for, and
// can cut them all. The client library closes only those that are idle, and waits
// for a broker that hangs.
type dialer struct {
	tls sinks.TLS

	over context.Context // ends with close
	end  context.CancelFunc

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newDialer(tls sinks.TLS) *dialer {
	d := &dialer{tls: tls, conns: make(map[net.Conn]struct{})}
	d.over, d.end = context.WithCancel(context.Background())
	return d
}

// dialError says that there was no connection, so that nothing was sent.
type dialError struct{ error }

func (e *dialError) Unwrap() error { return e.error }

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(d.over, cancel)
	defer stop()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err == nil {
		conn, err = d.keep(conn)
	}
	if err == nil && d.tls.Wanted() {
		conn, err = d.secure(ctx, conn, address)
	}
	if err != nil {
		return nil, &dialError{err}
	}
	return conn, nil
}

// keep puts a connection on the list of those that close cuts.
func (d *dialer) keep(conn net.Conn) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over.Err() != nil {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	d.conns[conn] = struct{}{}
	return &connection{conn, d}, nil
}

// secure shakes hands. The files are read here and not at the start, since brokers
// are reached over months, and certificates change.
func (d *dialer) secure(ctx context.Context, conn net.Conn, address string) (net.Conn, error) {
	config, err := d.tls.Config()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	if config.ServerName == "" {
		config.ServerName, _, _ = net.SplitHostPort(address) // else the handshake fails, and says so
	}
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = conn.Close() // the handshake's error says more
		return nil, fmt.Errorf("shake hands with %s: %w", address, err)
	}
	return secured, nil
}

// close cuts all connections and refuses new ones.
func (d *dialer) close() {
	d.end()
	d.mu.Lock()
	defer d.mu.Unlock()
	for conn := range d.conns {
		_ = conn.Close()
	}
}

// connection takes itself off the dialer's list when it is closed.
type connection struct {
	net.Conn
	dialer *dialer
}

func (c *connection) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.conns, c.Conn)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}
