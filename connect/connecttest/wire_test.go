package connecttest_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/connecttest"
)

// patience is how long something on the loopback may take that should be immediate.
const patience = 30 * time.Second

// echoServer sends back what it gets, until the test ends.
func echoServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				_, _ = io.Copy(conn, conn) // a wire that breaks is the point
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		work.Wait()
	})
	return listener.Addr().String()
}

func plug(t *testing.T, w *connecttest.Wire) net.Conn {
	t.Helper()
	conn, err := net.DialTimeout("tcp", w.Addr(), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// answers sends bytes and expects them back.
func answers(t *testing.T, conn net.Conn) {
	t.Helper()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	back := make([]byte, 4)
	if _, err := conn.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, back); err != nil || string(back) != "ping" {
		t.Fatalf("sent ping, got %q, %v", back, err)
	}
}

func TestWireResets(t *testing.T) {
	w := connecttest.StartWire(t, echoServer(t))
	conn := plug(t, w)
	answers(t, conn)
	w.Reset()
	if _, err := conn.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("after a reset: %v", err)
	}
	answers(t, plug(t, w))
}

func TestWireRefusesAndAcceptsOnItsPort(t *testing.T) {
	w := connecttest.StartWire(t, echoServer(t))
	addr, conn := w.Addr(), plug(t, w)
	answers(t, conn)
	w.Refuse()
	if _, err := net.DialTimeout("tcp", addr, patience); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial while it refuses: %v", err)
	}
	answers(t, conn)
	if err := w.Accept(); err != nil {
		t.Fatal(err)
	}
	if w.Addr() != addr {
		t.Errorf("moved from %s to %s", addr, w.Addr())
	}
	answers(t, plug(t, w))
}

func TestWireFreezesAndThaws(t *testing.T) {
	w := connecttest.StartWire(t, echoServer(t))
	conn := plug(t, w)
	answers(t, conn)
	w.Freeze()
	if _, err := conn.Write([]byte("ping")); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := conn.Read(make([]byte, 4)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("frozen wire carried %d bytes, %v", n, err)
	}
	w.Thaw()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if back, err := io.ReadAll(io.LimitReader(conn, 4)); err != nil || string(back) != "ping" {
		t.Errorf("thawed wire carried %q, %v", back, err)
	}
}

func TestWireDelays(t *testing.T) {
	const delay = 50 * time.Millisecond
	w := connecttest.StartWire(t, echoServer(t))
	conn := plug(t, w)
	w.Delay(delay)
	began := time.Now()
	answers(t, conn)
	if took := time.Since(began); took < 2*delay {
		t.Errorf("there and back took %v with a delay of %v", took, delay)
	}
}

func TestWireCutsInTheMiddle(t *testing.T) {
	w := connecttest.StartWire(t, echoServer(t))
	conn := plug(t, w)
	answers(t, conn)
	w.CutAfter(1000)
	if _, err := conn.Write(bytes.Repeat([]byte("x"), 1500)); err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	// A reset may overtake the last bytes, so there can be less, but never more.
	back, err := io.ReadAll(conn)
	if len(back) > 1000 || !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %d bytes and %v, want at most 1000 and a reset", len(back), err)
	}
	answers(t, plug(t, w))
}

func TestWireCarriesSparkConnect(t *testing.T) {
	s := onTCP(t)
	w := connecttest.StartWire(t, s.Addr())
	c := over(t, w.Addr())
	b := c.open()
	w.Reset()
	if _, err := drain(b.stream); status.Code(err) != codes.Unavailable {
		t.Errorf("bus over a broken wire: %v", err)
	}
	sent := session(t, s, c).Idle(`{}`)
	b.stream = c.reattach(t.Context(), b.operation, b.last)
	if got := b.event(); got.GetResponseId() != sent.ResponseID {
		t.Errorf("after the break came %v, want %v", got, sent)
	}
}
