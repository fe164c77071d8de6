package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a door whose connections are in memory, so that time can be played.
type pipes struct {
	made   chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.made:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { close(p.closed); return nil }

func (*pipes) Addr() net.Addr { return &net.UnixAddr{Net: "pipe"} }

// visit serves one connection while fn uses its other end.
func visit(t *testing.T, fn func(client net.Conn)) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	door := &pipes{make(chan net.Conn), make(chan struct{})}
	ended := make(chan error, 1)
	go func() { ended <- newServer(whole(), newLog(8), "").Serve(ctx, door) }()
	client, server := net.Pipe()
	door.made <- server
	fn(client)
	_ = client.Close()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

func ask(t *testing.T, client net.Conn, path string) {
	t.Helper()
	if _, err := io.WriteString(client, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
}

// Who reads nothing, or asks for nothing more, does not keep a connection for ever.
func TestConnectionsAreNotKeptForEver(t *testing.T) {
	for _, path := range []string{"/", "/livez", "/readyz", "/metrics", "/api/v1/status", "/api/v1/events?last=8"} {
		synctest.Test(t, func(t *testing.T) {
			visit(t, func(client net.Conn) {
				ask(t, client, path)
				time.Sleep(writePatience + time.Second)
				if n, err := client.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
					t.Errorf("%s: read %d bytes, %v, of an answer that nobody took", path, n, err)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		visit(t, func(client net.Conn) {
			ask(t, client, "/livez")
			in := bufio.NewReader(client)
			answer, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, answer.Body)
			_ = answer.Body.Close()
			began := time.Now()
			_ = client.SetReadDeadline(began.Add(10 * idlePatience))
			if _, err := in.ReadByte(); !errors.Is(err, io.EOF) || time.Since(began) < idlePatience-time.Second {
				t.Errorf("after %s: %v", time.Since(began), err)
			}
		})
	})
}

// A stream lasts for as long as its client reads.
func TestAStreamOutlivesThePatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		visit(t, func(client net.Conn) {
			ask(t, client, "/api/v1/events")
			_ = client.SetReadDeadline(time.Now().Add(10 * writePatience))
			if _, err := io.Copy(io.Discard, client); err == nil || !errors.As(err, new(net.Error)) {
				t.Errorf("the stream ended: %v", err)
			}
		})
	})
}
