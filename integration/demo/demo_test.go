//go:build integration

package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
)

const arrived = "✓ Every event in Spark's own event log has arrived at both sinks."

func TestDemoShowsEverythingAndEnds(t *testing.T) {
	s := startDemo(t, "35")
	s.await("webhook✓ progress   orders   batch 1 ")
	if err := syscall.Kill(s.bridge(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := s.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	s.says("starting Spark Connect", "session_id=", "nats sub -s nats://127.0.0.1:", "the bridge was killed; started again",
		"nats✓ webhook✓ bus        demo     attached: events flow",
		"nats✓ webhook✓ started    orders ", "nats✓ webhook✓ started    visits ", "nats✓ webhook✓ started    payments",
		"nats✓ webhook✓ progress   orders   batch 0 ", " in state, watermark ",
		"nats✓ webhook✓ terminated payments failed: [USER_RAISED_EXCEPTION] value ",
		"nats✓ webhook✓ terminated orders   stopped", "nats✓ webhook✓ terminated visits   stopped",
		"started             3        3                  3\n", "terminated          3        3                  3\n", arrived)
	if strings.Contains(s.said.String(), "\x1b") {
		t.Error("it writes colours into a pipe")
	}
	if left := s.folders(); len(left) > 0 {
		t.Errorf("it leaves %q", left)
	}
}

// TestDemoKilled needs no more than the check of startDemo that nothing is left.
func TestDemoKilled(t *testing.T) {
	s := startDemo(t, "")
	s.await("webhook✓ progress")
	for _, part := range []string{"java", "streams.py", "/bridge run"} {
		if s.processes(part) == "" {
			t.Errorf("no process has %s in its command: the test would not see what is left", part)
		}
	}
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
}

// TestDemoEndsWithItsParent kills what started the demo, as when "go run" is killed.
func TestDemoEndsWithItsParent(t *testing.T) {
	s := startDemo(t, "", "/bin/sh", "-c", `"$0" & wait`)
	s.await("webhook✓ progress")
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.exitCode() // of the shell, once the demo has closed its output
	s.says(arrived)
}

func TestDemoInterruptedAtOnce(t *testing.T) {
	s := startDemo(t, "")
	s.await("starting Spark Connect")
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := s.exitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if left := s.folders(); len(left) > 0 {
		t.Errorf("it leaves %q", left)
	}
}

func TestDemoTellsWhatFailed(t *testing.T) {
	s := startDemo(t, "600")
	s.await("webhook✓ started")
	var pid int
	if _, err := fmt.Sscan(s.processes("java"), &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if code := s.exitCode(); code != 1 {
		t.Errorf("exit code %d, want 1", code)
	}
	s.says("demo: the Spark server has ended by itself", "--- end of ", "All logs are in "+s.temp)
	if left := s.folders(); len(left) != 1 {
		t.Errorf("it leaves %q, want the folder with the logs", left)
	}
}
