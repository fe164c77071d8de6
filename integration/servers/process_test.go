package servers

import (
	"context"
	"errors"
	"net"
	"strings"
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

// requireGone fails the test if a server, or any process of its group, is left, or its port is open.
func requireGone(t *testing.T, pid, port int) {
	t.Helper()
	requireGroupGone(t, pid)
	if connection, err := net.Dial("tcp", loopback(port)); err == nil {
		t.Errorf("port %d is still open", port)
		_ = connection.Close()
	}
}

// requireGroupGone waits a moment: what was killed is a zombie until its new parent gets to it.
func requireGroupGone(t *testing.T, pid int) {
	t.Helper()
	for began := time.Now(); !errors.Is(syscall.Kill(-pid, 0), syscall.ESRCH); {
		if time.Since(began) > 5*time.Second {
			t.Fatalf("something of process group %d is left", pid)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// shell is a process that runs a script; it is ready at once unless the test says otherwise.
func shell(t *testing.T, script string) *process {
	t.Helper()
	p := &process{command: command{name: "shell", path: "/bin/sh", args: []string{"-c", script}, dir: t.TempDir(),
		output: "output.log", ready: func(context.Context) error { return nil }}}
	stopped(t, p)
	return p
}

func TestStartTellsWhyAServerEnded(t *testing.T) {
	p := shell(t, "echo no such disk >&2; exit 3")
	p.command.ready = func(context.Context) error { return errors.New("not yet") }
	err := p.start(within(t, 10*time.Second))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such disk") {
		t.Errorf("start answered %v", err)
	}
}

func TestStartLeavesNothingWhenItTakesTooLong(t *testing.T) {
	p := shell(t, "sleep 600 & sleep 601")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("changed my mind")
	pids := make(chan int, 1)
	p.command.ready = func(context.Context) error {
		select {
		case pids <- p.Pid():
		default:
		}
		cancel(cause)
		return errors.New("not yet")
	}
	if err := p.start(ctx); !errors.Is(err, cause) {
		t.Errorf("start answered %v", err)
	}
	requireGroupGone(t, <-pids)
}

func TestStopReachesAPausedServerAndWhatItStarted(t *testing.T) {
	p := shell(t, "sleep 600 & sleep 601")
	requireNoError(t, p.start(t.Context()))
	if err := p.start(t.Context()); err == nil {
		t.Error("a running server was started")
	}
	pid := p.Pid()
	p.Pause()
	requireNoError(t, p.Stop())
	requireGroupGone(t, pid)
	if p.Pid() != 0 {
		t.Errorf("a stopped server has pid %d", p.Pid())
	}
	requireNoError(t, p.Stop())
	requireNoError(t, p.Restart(t.Context()))
	if p.Pid() == 0 || p.Pid() == pid {
		t.Errorf("pid %d after the restart, %d before", p.Pid(), pid)
	}
	p.Kill()
	<-p.Exited()
}
