//go:build integration

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// soon is far above what any step takes, since machines that run tests are often busy.
const soon = 4 * time.Minute

// showing is a demo that runs in a process of its own.
type showing struct {
	t      *testing.T
	temp   string // its folder for temporary files, whose name shows in the processes that it starts
	cmd    *exec.Cmd
	said   *output
	exited chan struct{}
}

// startDemo builds the demo and runs it, as wrapped says. Whatever is left at the end of the test
// fails it.
func startDemo(t *testing.T, seconds string, wrapped ...string) *showing {
	t.Helper()
	program := filepath.Join(t.TempDir(), "demo")
	if said, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	command := append(wrapped, program)
	s := &showing{t: t, temp: t.TempDir(), cmd: exec.Command(command[0], command[1:]...), said: newOutput(), exited: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), "TMPDIR="+s.temp, "DEMO_SECONDS="+seconds)
	s.cmd.Stdout, s.cmd.Stderr = s.said, s.said
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.exited)
		_ = s.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.exited
		s.nothingLeft()
		if t.Failed() {
			t.Logf("the demo said:\n%s", s.said)
		}
	})
	return s
}

// await waits until the demo has printed a text.
func (s *showing) await(text string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), soon)
	defer cancel()
	for {
		said, changed := s.said.all()
		if strings.Contains(said, text) {
			return
		}
		select {
		case <-changed:
		case <-s.exited:
			if !strings.Contains(s.said.String(), text) {
				s.t.Fatalf("the demo ended without saying %q", text)
			}
		case <-ctx.Done():
			s.t.Fatalf("the demo does not say %q", text)
		}
	}
}

func (s *showing) exitCode() int {
	s.t.Helper()
	select {
	case <-s.exited:
	case <-time.After(soon):
		s.t.Fatal("the demo does not end")
	}
	return s.cmd.ProcessState.ExitCode()
}

// bridge is the process id in the advice to crash it.
func (s *showing) bridge() int {
	s.t.Helper()
	_, after, _ := strings.Cut(s.said.String(), "kill -9 ")
	pid, err := strconv.Atoi(strings.Fields(after + " ?")[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return pid
}

// nothingLeft waits for the end of all processes that name the demo's folder.
func (s *showing) nothingLeft() {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		left := s.processes("")
		if left == "" {
			return
		}
		if time.Now().After(deadline) {
			s.t.Errorf("processes are left:\n%s", left)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// processes lists those that the demo has started and whose command has a part.
func (s *showing) processes(part string) string {
	s.t.Helper()
	list, err := exec.Command("ps", "-A", "-o", "pid=,args=").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	var found strings.Builder
	for line := range strings.Lines(string(list)) {
		if strings.Contains(line, s.temp+"/sparkbridge-demo-") && strings.Contains(line, part) {
			found.WriteString(line)
		}
	}
	return found.String()
}

func (s *showing) says(texts ...string) {
	s.t.Helper()
	for _, text := range texts {
		if !strings.Contains(s.said.String(), text) {
			s.t.Errorf("the demo has not said %q", text)
		}
	}
}

// folders are what it has left.
func (s *showing) folders() []string {
	left, err := filepath.Glob(filepath.Join(s.temp, "*"))
	if err != nil {
		s.t.Fatal(err)
	}
	return left
}

// output is what a process has printed so far.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed, and replaced, by each write
}

var _ io.Writer = (*output)(nil)

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.text.Write(text)
}

func (o *output) all() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.changed
}

func (o *output) String() string {
	text, _ := o.all()
	return text
}
