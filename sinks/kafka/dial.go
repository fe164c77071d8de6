package kafka

import (
	"context"
	"net"
	"sync"
)

// dialer opens the connections of a sink and can cut them all. The client
// library closes only those that are idle, and waits for a broker that hangs.
type dialer struct {
	over context.Context // ends with close
	end  context.CancelFunc

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newDialer() *dialer {
	d := &dialer{conns: make(map[net.Conn]struct{})}
	d.over, d.end = context.WithCancel(context.Background())
	return d
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(d.over, cancel)
	defer stop()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over.Err() != nil {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	d.conns[conn] = struct{}{}
	return &connection{conn, d}, nil
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
