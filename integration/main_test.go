//go:build integration

// Package integration tests the whole program: the bridge as people run it, a process with a
// configuration file, between a real Spark Connect server and real destinations. What it must
// have delivered is told by somebody else: by the event log that Spark writes of its own
// accord, and by a proxy that records what went over the wire.
package integration

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// shared is what all tests use.
var shared *world

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run runs the tests between the start of the world and its end, which are tests too: nothing
// may be left of what was started.
func run(m *testing.M) int {
	began := time.Now()
	flag.Parse()
	if err := flag.Set("test.parallel", "5"); err != nil { // tests that run beside others wait most of the time
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	root, err := os.MkdirTemp("", "sparkbridge-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	shared = newWorld(root)
	if err := buildBridge(shared.program); err != nil {
		fmt.Fprintln(os.Stderr, errors.Join(err, os.RemoveAll(root)))
		return 1
	}
	code := m.Run()
	if err := errors.Join(shared.close(), processesLeft(root), goleak.Find()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	fmt.Fprintf(os.Stderr, "integration: %s in all\n", time.Since(began).Round(time.Second))
	if code != 0 {
		fmt.Fprintf(os.Stderr, "the folders of all servers and bridges are in %s\n", root)
		return code
	}
	if err := os.RemoveAll(root); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func buildBridge(path string) error {
	said, err := exec.Command("go", "build", "-o", path, "sparkbridge/cmd/bridge").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build bridge: %w\n%s", err, said)
	}
	return nil
}

// processesLeft looks for children of this process, and for orphans that name its folder.
// Those that were killed last may take a moment to go.
func processesLeft(root string) error {
	deadline := time.Now().Add(10 * time.Second)
	for {
		left, err := processesOf(root)
		if err != nil || left == "" {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes are left:\n%s", left)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func processesOf(root string) (string, error) {
	ps := exec.Command("ps", "-A", "-o", "pid=,ppid=,args=")
	list, err := ps.Output()
	if err != nil {
		return "", fmt.Errorf("list processes: %w", err)
	}
	var left strings.Builder
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] == strconv.Itoa(ps.Process.Pid) || fields[0] == strconv.Itoa(os.Getpid()) {
			continue
		}
		if fields[1] == strconv.Itoa(os.Getpid()) || strings.Contains(line, filepath.Base(root)) {
			left.WriteString(line)
		}
	}
	return left.String(), nil
}
