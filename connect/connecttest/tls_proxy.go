package connecttest

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"testing"
)

// StartTLSProxy speaks TLS to the clients of a listener, and passes what is in it on to a
// server that speaks none, until the test ends. It offers HTTP/2 unless config has other
// protocols.
func StartTLSProxy(t testing.TB, listener net.Listener, config *tls.Config, dial func(ctx context.Context, address string) (net.Conn, error)) {
	t.Helper()
	if config.NextProtos == nil {
		config = config.Clone()
		config.NextProtos = []string{"h2"}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { unwrap(ctx, tls.Server(client, config), dial) })
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = listener.Close() // ends the loop above, which is waited for
		running.Wait()
	})
}

// unwrap is one connection. Where the handshake fails, TLS has told the client why.
func unwrap(ctx context.Context, client *tls.Conn, dial func(context.Context, string) (net.Conn, error)) {
	defer client.Close()
	if err := client.HandshakeContext(ctx); err != nil {
		return
	}
	server, err := dial(ctx, "")
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		_ = client.Close() // both only end the copying
		_ = server.Close()
	})
	defer stop()
	var back sync.WaitGroup
	back.Go(func() {
		defer cancel()
		_, _ = io.Copy(client, server)
	})
	_, _ = io.Copy(server, client)
	cancel()
	back.Wait()
}
