package servers

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// NATSOptions says how to start a NATS server.
type NATSOptions struct {
	Port   int       // 0 picks a free one; it stays the same over a Restart
	Dir    string    // required: work folder, with JetStream's store
	Config string    // more of nats-server's configuration, such as authorization or tls
	Log    io.Writer // gets the server's output beside Dir/nats.log; may be nil
}

// NATS is a nats-server with JetStream, in a process of its own.
type NATS struct {
	process
	port int
}

// StartNATS starts a NATS server and returns when it talks to clients. ctx bounds the start
// only. The first start on a machine compiles the server, which takes half a minute.
func StartNATS(ctx context.Context, options NATSOptions) (*NATS, error) {
	program, err := natsProgram(ctx)
	if err != nil {
		return nil, err
	}
	if options.Dir == "" {
		return nil, errors.New("start NATS: NATSOptions.Dir is empty")
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, fmt.Errorf("start NATS: %w", err)
	}
	port, err := choosePort(options.Port)
	if err != nil {
		return nil, fmt.Errorf("start NATS: %w", err)
	}
	if err := writeNATS(dir, port, options.Config); err != nil {
		return nil, fmt.Errorf("start NATS: %w", err)
	}
	server := &NATS{port: port}
	server.command = command{
		name:   "NATS",
		path:   program,
		args:   []string{"-c", "nats.conf"},
		env:    os.Environ(),
		dir:    dir,
		output: "nats.log",
		log:    options.Log,
		ready:  func(ctx context.Context) error { return greets(ctx, port) },
	}
	if err := server.start(ctx); err != nil {
		return nil, err
	}
	return server, nil
}

// URL is the server's address for clients.
func (n *NATS) URL() string { return "nats://" + loopback(n.port) }

// Port is where the server listens, on 127.0.0.1.
func (n *NATS) Port() int { return n.port }

func writeNATS(dir string, port int, more string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf("listen: %q\njetstream: {store_dir: %q}\n%s\n", loopback(port), filepath.Join(dir, "store"), more)
	return os.WriteFile(filepath.Join(dir, "nats.conf"), []byte(text), 0o600)
}

// greets is nil once the server sends its INFO line, which it does before any login, and only
// after JetStream has recovered its streams.
func greets(ctx context.Context, port int) error {
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", loopback(port))
	if err != nil {
		return err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	line, err := bufio.NewReader(connection).ReadString('\n')
	if err != nil {
		return err
	}
	if !strings.HasPrefix(line, "INFO ") || !strings.Contains(line, `"jetstream":true`) {
		return fmt.Errorf("greeted by %.80q", line)
	}
	return nil
}

const natsModule = "github.com/nats-io/nats-server/v2"

// natsProgram compiles the nats-server that this module requires, once, into the cache.
func natsProgram(ctx context.Context) (string, error) {
	said, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", natsModule).Output()
	if err != nil {
		return "", fmt.Errorf("find version of %s (run inside the module): %w", natsModule, err)
	}
	folder := filepath.Join(Cache(), "nats-server-"+strings.TrimSpace(string(said)))
	program := filepath.Join(folder, "nats-server")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("compile nats-server: %w", err)
	}
	// Two programs may compile at once; each renames a complete file into place.
	fresh := filepath.Join(folder, "new-"+strconv.Itoa(os.Getpid()))
	if said, err := exec.CommandContext(ctx, "go", "build", "-o", fresh, natsModule).CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile nats-server: %w\n%s", err, said)
	}
	if err := os.Rename(fresh, program); err != nil {
		return "", fmt.Errorf("compile nats-server: %w", err)
	}
	return program, nil
}
