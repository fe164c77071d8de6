//go:build integration

package servers

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// within bounds what a test waits for, so that a hang shows as the step that hung.
func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("not within "+limit.String()))
	t.Cleanup(cancel)
	return ctx
}

// stopped registers the end of a server, and fails the test if it does not end well.
func stopped(t *testing.T, server interface{ Stop() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// requireGone fails the test if a process, or any of its group, is left, or its port is open.
// What was killed last may be a zombie until init gets to it.
func requireGone(t *testing.T, pid, port int) {
	t.Helper()
	for began := time.Now(); !errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH); {
		if time.Since(began) > 5*time.Second {
			t.Fatalf("something of process group %d is left", pid)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if connection, err := net.Dial("tcp", loopback(port)); err == nil {
		t.Errorf("port %d is still open", port)
		_ = connection.Close()
	}
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
