//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"sparkbridge/integration/servers"
)

// settings is a configuration file, to be changed by tests.
type settings map[string]any

// configure makes the configuration that most tests start from: one source, which attaches at
// once, and a journal in a folder of the test.
func configure(t *testing.T, source, remote string, sinks ...*sink) settings {
	t.Helper()
	var list []any
	for _, s := range sinks {
		list = append(list, s.config)
	}
	return settings{
		"sources": []any{map[string]any{"name": source, "remote": remote, "attach": "at_once", "poll_interval": "500ms"}},
		"journal": map[string]any{"dir": folder(t, "journal-"+source)},
		"sinks":   list,
		"log":     map[string]any{"level": "debug", "format": "json"},
	}
}

// source is the first source, to be changed.
func (s settings) source() map[string]any { return s["sources"].([]any)[0].(map[string]any) }

func (s settings) journal() string { return s["journal"].(map[string]any)["dir"].(string) }

// bridge is the program, running or not.
type bridge struct {
	t *testing.T
	*servers.Program
	said *said
	dir  string
}

// startBridge runs the program with a configuration. What it said is shown if the test fails.
func startBridge(t *testing.T, name string, config settings) *bridge {
	t.Helper()
	b := &bridge{t: t, said: &said{changed: make(chan struct{})}, dir: folder(t, name)}
	text, err := yaml.Marshal(map[string]any(config))
	requireNoError(t, err)
	requireNoError(t, os.MkdirAll(b.dir, 0o755))
	file := filepath.Join(b.dir, "bridge.yaml")
	requireNoError(t, os.WriteFile(file, text, 0o600))
	b.Program, err = servers.RunProgram(t.Context(), servers.ProgramOptions{
		Path: shared.program, Args: []string{"run", "-c", file}, Dir: b.dir, Log: b.said,
	})
	requireNoError(t, err)
	t.Cleanup(func() {
		b.Kill()
		if t.Failed() {
			log, err := os.ReadFile(filepath.Join(b.dir, "bridge.log"))
			t.Logf("what bridge %s said: (%v)\n%s", name, err, log)
		}
	})
	return b
}

// stop ends the bridge as a supervisor does, and requires that it ends well and in time.
func (b *bridge) stop() {
	b.t.Helper()
	began := time.Now()
	if err := b.Stop(); err != nil {
		b.t.Fatal(err)
	}
	if took := time.Since(began); b.ExitCode() != 0 || took > 10*time.Second {
		b.t.Errorf("after SIGTERM the bridge exited with %d after %s, want 0 within 10s", b.ExitCode(), took)
	}
}

// exit waits until the bridge ends of its own accord, and returns the exit code and what it
// said that is no log line.
func (b *bridge) exit() (code int, message []string) {
	b.t.Helper()
	select {
	case <-b.Exited():
	case <-within(b.t, patience).Done():
		b.t.Fatal("the bridge still runs, but should have ended with an error")
	}
	lines, _ := b.said.all()
	for _, l := range lines {
		if l.Message == "" {
			message = append(message, l.text)
		}
	}
	return b.ExitCode(), message
}

// attached waits until the bridge holds the bus, in lines behind the first n.
func (b *bridge) attached(n int) {
	b.t.Helper()
	b.await("that the bus is attached", n, isBus("attached", ""))
}

// await waits for a log line behind the first n.
func (b *bridge) await(what string, n int, match func(line) bool) line {
	b.t.Helper()
	found, err := b.said.await(within(b.t, patience), n, b.Exited(), match)
	if err != nil {
		b.t.Fatalf("await %s: %v", what, err)
	}
	return found
}

// line is a line of the bridge's output.
type line struct {
	Message string `json:"msg"`   // empty where it is no log line
	State   string `json:"state"` // of the bus
	text    string
}

// isBus matches what is said of a new state of the bus.
func isBus(state, part string) func(line) bool {
	return func(l line) bool { return l.Message == "bus" && l.State == state && strings.Contains(l.text, part) }
}

func isSaid(message, part string) func(line) bool {
	return func(l line) bool { return l.Message == message && strings.Contains(l.text, part) }
}

// said is the output of a bridge, over all its lives.
type said struct {
	mu      sync.Mutex
	partial []byte
	lines   []line
	changed chan struct{} // closed, and replaced, by each line
}

func (s *said) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.partial = append(s.partial, text...)
	for {
		whole, rest, found := bytes.Cut(s.partial, []byte{'\n'})
		if !found {
			return len(text), nil
		}
		l := line{text: string(whole)}
		_ = json.Unmarshal(whole, &l) // what is no log line has no message
		s.lines, s.partial = append(s.lines, l), rest
		close(s.changed)
		s.changed = make(chan struct{})
	}
}

func (s *said) all() ([]line, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines[:len(s.lines):len(s.lines)], s.changed
}

func (s *said) count(match func(line) bool) (n int) {
	lines, _ := s.all()
	for _, l := range lines {
		if match(l) {
			n++
		}
	}
	return n
}

func (s *said) await(ctx context.Context, from int, exited <-chan struct{}, match func(line) bool) (line, error) {
	for {
		lines, changed := s.all()
		for _, l := range lines[min(from, len(lines)):] {
			if match(l) {
				return l, nil
			}
		}
		from = max(from, len(lines))
		select {
		case <-changed:
		case <-exited:
			if lines, _ := s.all(); len(lines) == from {
				return line{}, errors.New("the bridge has ended")
			}
		case <-ctx.Done():
			return line{}, context.Cause(ctx)
		}
	}
}
