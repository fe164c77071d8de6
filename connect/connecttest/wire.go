package connecttest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Wire is a TCP connection that goes wrong on demand: clients connect to its address,
// and it carries their bytes to a target and back.
type Wire struct {
	target string
	addr   string
	work   sync.WaitGroup

	mu       sync.Mutex
	listener net.Listener // nil while connections are refused
	links    map[*link]struct{}
	thawed   chan struct{} // closed while bytes flow
	delay    time.Duration
	budget   int64 // bytes to clients before all is cut; negative: no end
	stopped  bool  // the test has ended
}

// StartWire opens a wire on a free port of the loopback until the test ends.
func StartWire(t testing.TB, target string) *Wire {
	t.Helper()
	w := &Wire{target: target, addr: "127.0.0.1:0", links: map[*link]struct{}{}, thawed: make(chan struct{}), budget: -1}
	close(w.thawed)
	if err := w.Accept(); err != nil {
		t.Fatalf("start wire: %v", err)
	}
	t.Cleanup(func() {
		w.Refuse()
		w.mu.Lock()
		w.stopped = true
		w.mu.Unlock()
		w.Reset()
		w.work.Wait()
	})
	return w
}

// Addr is where clients connect, as host:port; it stays the same.
func (w *Wire) Addr() string { return w.addr }

// Refuse lets go of the port, so that new connections are refused; present ones stay.
func (w *Wire) Refuse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != nil {
		_ = w.listener.Close() // it can only be closed already
		w.listener = nil
	}
}

// Accept takes connections again after Refuse, on the same port.
func (w *Wire) Accept() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != nil {
		return nil
	}
	listener, err := net.Listen("tcp", w.addr)
	if err != nil {
		return err
	}
	w.listener, w.addr = listener, listener.Addr().String()
	w.work.Go(func() { w.serve(listener) })
	return nil
}

// Reset breaks all present connections with a TCP reset, as a peer that died does.
func (w *Wire) Reset() {
	w.mu.Lock()
	links := make([]*link, 0, len(w.links))
	for l := range w.links {
		links = append(links, l)
	}
	w.mu.Unlock()
	for _, l := range links {
		l.reset()
	}
}

// Freeze stops all bytes, of later connections too, without closing anything.
func (w *Wire) Freeze() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.thawed:
		w.thawed = make(chan struct{})
	default:
	}
}

// Thaw lets the bytes flow again, those that were held back first.
func (w *Wire) Thaw() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.thawed:
	default:
		close(w.thawed)
	}
}

// Delay holds every piece of data back for a time, in both directions; 0 for none.
func (w *Wire) Delay(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.delay = d
}

// CutAfter resets all connections once n more bytes have gone to clients; a message is
// cut where that happens to fall.
func (w *Wire) CutAfter(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.budget = n
}

func (w *Wire) serve(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return // refused from now on
		}
		w.work.Go(func() { w.connect(client) })
	}
}

// connect carries one connection until either end closes it.
func (w *Wire) connect(client net.Conn) {
	server, err := net.Dial("tcp", w.target)
	if err != nil {
		_ = client.Close() // a target that refuses is told by an early end
		return
	}
	l := &link{client: client.(*net.TCPConn), server: server.(*net.TCPConn), closed: make(chan struct{})}
	if !w.register(l) {
		l.reset()
		return
	}
	var directions sync.WaitGroup
	directions.Go(func() { w.pump(l, l.client, l.server, func(n int) (int, bool) { return n, false }) })
	directions.Go(func() { w.pump(l, l.server, l.client, w.spend) })
	directions.Wait()
	w.mu.Lock()
	delete(w.links, l)
	w.mu.Unlock()
}

func (w *Wire) register(l *link) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return false
	}
	w.links[l] = struct{}{}
	return true
}

// pump carries one direction. allow says how much of a piece may pass, and whether the
// wire is cut behind it.
func (w *Wire) pump(l *link, from, to net.Conn, allow func(n int) (pass int, cut bool)) {
	defer l.close()
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if err != nil || !w.hold(l) {
			return
		}
		pass, cut := allow(n)
		if _, err := to.Write(piece[:pass]); err != nil {
			return
		}
		if cut {
			w.Reset()
			return
		}
	}
}

// hold waits out a freeze and the delay; false means that the link has closed meanwhile.
func (w *Wire) hold(l *link) bool {
	w.mu.Lock()
	thawed, delay := w.thawed, w.delay
	w.mu.Unlock()
	select {
	case <-thawed:
	case <-l.closed:
		return false
	}
	if delay == 0 {
		return true
	}
	select {
	case <-time.After(delay):
		return true
	case <-l.closed:
		return false
	}
}

func (w *Wire) spend(n int) (pass int, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.budget < 0 {
		return n, false
	}
	pass = int(min(int64(n), w.budget))
	w.budget -= int64(pass)
	if w.budget == 0 {
		w.budget = -1
		return pass, true
	}
	return pass, false
}

// link is one connection through a wire.
type link struct {
	client, server *net.TCPConn
	once           sync.Once
	closed         chan struct{}
}

// close ends both connections; each may be gone already.
func (l *link) close() {
	l.once.Do(func() {
		close(l.closed)
		_ = l.client.Close()
		_ = l.server.Close()
	})
}

func (l *link) reset() {
	_ = l.client.SetLinger(0)
	_ = l.server.SetLinger(0)
	l.close()
}
