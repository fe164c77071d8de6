package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// patience bounds what a script waits for; it is far more than is ever needed.
const patience = time.Minute

// exits runs a program and compares its exit code: exits 2 bridge run -c x.yaml.
// What it says is in the files out and err.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: exits code program [args…]")
	}
	cmd, stdout, stderr := command(ts, args[1], args[2:])
	ts.Check(cmd.Start())
	finish(ts, cmd, args[0])
	save(ts, stdout, stderr)
}

// sendSignals runs a program, sends it signals once it has logged a text, and
// compares its exit code: signal running INT,TERM 1 bridge-hangs run -c x.yaml.
func sendSignals(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 4 {
		ts.Fatalf("usage: signal text signals code program [args…]")
	}
	cmd, stdout, stderr := command(ts, args[3], args[4:])
	running := &waiter{buffer: stderr, text: args[0], found: make(chan struct{})}
	cmd.Stderr = running
	ts.Check(cmd.Start())
	select {
	case <-running.found:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		ts.Fatalf("the program did not log that it runs: %s", stderr)
	}
	for name := range strings.SplitSeq(args[1], ",") {
		ts.Check(cmd.Process.Signal(map[string]os.Signal{"INT": os.Interrupt, "TERM": syscall.SIGTERM}[name]))
	}
	finish(ts, cmd, args[2])
	save(ts, stdout, stderr)
}

// tails runs a program that prints until it is stopped, stops it once it has printed a
// text, and demands that it ends well: tails text bridge tail.
func tails(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: tails text program [args…]")
	}
	cmd, stdout, stderr := command(ts, args[1], args[2:])
	printing := &waiter{buffer: stdout, text: args[0], found: make(chan struct{})}
	cmd.Stdout = printing
	ts.Check(cmd.Start())
	select {
	case <-printing.found:
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		ts.Fatalf("the program did not print %q: %s%s", args[0], stdout, stderr)
	}
	ts.Check(cmd.Process.Signal(os.Interrupt))
	finish(ts, cmd, "0")
	save(ts, stdout, stderr)
}

func command(ts *testscript.TestScript, name string, args []string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	path := ""
	for dir := range strings.SplitSeq(ts.Getenv("PATH"), string(os.PathListSeparator)) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			path = filepath.Join(dir, name)
			break
		}
	}
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	cmd = exec.Command(path, args...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Stdout, cmd.Stderr = stdout, stderr
	for _, name := range []string{"PATH", "HOME", "SPARK_REMOTE", "SPARK_CONNECT_AUTHENTICATE_TOKEN", "SPARK_USER", "NATS_URL"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return cmd, stdout, stderr
}

func finish(ts *testscript.TestScript, cmd *exec.Cmd, want string) {
	overdue := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer overdue.Stop()
	_ = cmd.Wait()
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != want {
		ts.Fatalf("exit code %s, want %s; standard error:\n%s", got, want, cmd.Stderr)
	}
}

func save(ts *testscript.TestScript, stdout, stderr *bytes.Buffer) {
	ts.Check(os.WriteFile(ts.MkAbs("out"), stdout.Bytes(), 0o600))
	ts.Check(os.WriteFile(ts.MkAbs("err"), stderr.Bytes(), 0o600))
}

// waiter is a writer that tells when a text has passed.
type waiter struct {
	buffer *bytes.Buffer
	text   string
	found  chan struct{}
	told   bool
}

func (w *waiter) Write(p []byte) (int, error) {
	n, err := w.buffer.Write(p)
	if !w.told && strings.Contains(w.buffer.String(), w.text) {
		w.told = true
		close(w.found)
	}
	return n, err
}

func (w *waiter) String() string { return w.buffer.String() }
