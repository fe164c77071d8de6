package connecttest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc/test/bufconn"
)

// errRefused is what a dial gets while nobody listens in memory.
var errRefused = errors.New("connection refused")

const (
	memoryAddr   = "127.0.0.1:15002"
	memoryBuffer = 256 << 10
)

// network is the way to the server: where it listens, and the connections to it,
// which it can break or freeze.
type network struct {
	mu       sync.Mutex
	tcp      string // empty: in memory
	listener net.Listener
	refuse   bool
	conns    map[*conn]struct{} // the server's ends
}

func newNetwork(tcp string) *network {
	return &network{tcp: tcp, conns: map[*conn]struct{}{}}
}

// listen opens the address, the same one each time.
func (n *network) listen() (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tcp == "" {
		n.listener = bufconn.Listen(memoryBuffer)
		return tracked{n.listener, n}, nil
	}
	listener, err := net.Listen("tcp", n.tcp)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", n.tcp, err)
	}
	n.listener, n.tcp = listener, listener.Addr().String()
	return tracked{listener, n}, nil
}

// close stops listening; connections stay until the server closes them.
func (n *network) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.refuse = false
	_ = n.listener.Close() // the gRPC server closes it again and reports what matters
	n.listener = nil
}

func (n *network) addr() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.tcp == "" {
		return memoryAddr
	}
	return n.tcp
}

func (n *network) dial(ctx context.Context) (net.Conn, error) {
	n.mu.Lock()
	listener, refuse := n.listener, n.refuse
	n.mu.Unlock()
	if listener == nil || refuse {
		return nil, errRefused
	}
	if memory, ok := listener.(*bufconn.Listener); ok {
		return memory.DialContext(ctx)
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", listener.Addr().String())
}

func (n *network) open() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

func (n *network) each(do func(*conn)) {
	n.mu.Lock()
	conns := make([]*conn, 0, len(n.conns))
	for c := range n.conns {
		conns = append(conns, c)
	}
	n.mu.Unlock()
	for _, c := range conns {
		do(c)
	}
}

// Refuse makes Dialer fail as a closed port does, or work again.
func (s *Server) Refuse(refuse bool) {
	s.network.mu.Lock()
	defer s.network.mu.Unlock()
	s.network.refuse = refuse
}

// Disconnect breaks all connections; the server lives on, and so do operations.
func (s *Server) Disconnect() {
	s.network.each(func(c *conn) { _ = c.Close() }) // broken is what they shall be
}

// Freeze makes all present connections swallow what is sent in either direction, for
// good, as a dead peer behind a firewall does. Connections made later are sound.
func (s *Server) Freeze() {
	s.network.each((*conn).freeze)
}

// tracked is a listener whose connections the network knows.
type tracked struct {
	net.Listener
	network *network
}

func (l tracked) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: accepted, network: l.network, closed: make(chan struct{})}
	l.network.mu.Lock()
	l.network.conns[c] = struct{}{}
	l.network.mu.Unlock()
	return c, nil
}

// conn is the server's end of a connection.
type conn struct {
	net.Conn
	network *network
	closed  chan struct{}

	mu     sync.Mutex
	frozen bool
	once   sync.Once
}

func (c *conn) freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.frozen = true
}

func (c *conn) isFrozen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.frozen
}

// closeFrozen ends what no client can end any more.
func (c *conn) closeFrozen() {
	if c.isFrozen() {
		_ = c.Close() // nobody is there to miss it
	}
}

// Read may have begun before the freeze: what it brings is swallowed then.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.isFrozen() {
		<-c.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	if c.isFrozen() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.network.mu.Lock()
		delete(c.network.conns, c)
		c.network.mu.Unlock()
	})
	return c.Conn.Close()
}
