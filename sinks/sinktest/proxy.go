package sinktest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands between a sink and a real server in the same process, which
// cannot be killed or frozen without the test. It forwards bytes, and does to
// the connections what a bad network or a sick server does.
type Proxy struct {
	target, addr string

	mu     sync.Mutex
	thawed chan struct{} // closed: bytes pass
	delay  time.Duration
	stop   func() // ends the present run and waits for it; nil while stopped
}

// NewProxy starts a proxy in front of target, a host:port on this machine. It
// ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p := &Proxy{target: target, addr: "127.0.0.1:0", thawed: make(chan struct{})}
	close(p.thawed)
	p.Start(t)
	t.Cleanup(func() { p.Stop(t) })
	return p
}

// Addr is the host:port to connect to; it stays the same over Stop and Start.
func (p *Proxy) Addr() string { return p.addr }

// Start accepts connections.
func (p *Proxy) Start(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop != nil {
		return
	}
	l, err := net.Listen("tcp", p.addr)
	if err != nil {
		t.Fatalf("start proxy at %s: %v", p.addr, err)
	}
	p.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	context.AfterFunc(ctx, func() { _ = l.Close() })
	running.Go(func() { p.accept(ctx, l, &running) })
	p.stop = func() { cancel(); _ = l.Close(); running.Wait() }
}

// Stop breaks all connections and refuses new ones.
func (p *Proxy) Stop(testing.TB) {
	p.mu.Lock()
	stop := p.stop
	p.stop = nil
	p.mu.Unlock()
	if stop != nil {
		stop()
	}
}

// Freeze lets nothing pass any more, but keeps and accepts connections.
func (p *Proxy) Freeze(testing.TB) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.thawed:
		p.thawed = make(chan struct{})
	default:
	}
}

// Thaw lets everything pass that was held back.
func (p *Proxy) Thaw(testing.TB) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.thawed:
	default:
		close(p.thawed)
	}
}

// Slow holds back for delay whatever the server sends.
func (p *Proxy) Slow(_ testing.TB, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = delay
}

func (p *Proxy) accept(ctx context.Context, l net.Listener, running *sync.WaitGroup) {
	for {
		client, err := l.Accept()
		if err != nil {
			return
		}
		running.Go(func() { p.serve(ctx, client) })
	}
}

// serve forwards one connection until either side, or ctx, ends it.
func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.target)
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { _, _ = client.Close(), server.Close() })
	var pumps sync.WaitGroup
	pumps.Go(func() { defer cancel(); p.pump(ctx, server, client, false) })
	pumps.Go(func() { defer cancel(); p.pump(ctx, client, server, true) })
	pumps.Wait()
}

func (p *Proxy) pump(ctx context.Context, to, from net.Conn, answers bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && p.pass(ctx, answers) {
			_, _ = to.Write(buffer[:n])
		}
		if err != nil || ctx.Err() != nil {
			return
		}
	}
}

// pass waits until bytes may pass; false says that the connection is over.
func (p *Proxy) pass(ctx context.Context, answers bool) bool {
	p.mu.Lock()
	thawed, delay := p.thawed, p.delay
	p.mu.Unlock()
	if answers && delay > 0 {
		pause(ctx, delay)
	}
	select {
	case <-thawed:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// pause waits for d or the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
