package servers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// How long a server may take before it counts as broken. They are far above what is normal
// (5 s to start Spark, 1 s to stop it), since machines that run tests are often overloaded.
const (
	startWithin = 3 * time.Minute
	stopWithin  = 30 * time.Second
)

// command is what it takes to start a server, and to start it again.
type command struct {
	name   string // for messages: "Spark 4.2.0"
	path   string
	args   []string
	env    []string
	dir    string                          // working directory
	output string                          // file in dir that gets its output; a run adds to it
	log    io.Writer                       // gets its output too; may be nil
	facts  io.Writer                       // gets its standard output instead of the two above; may be nil
	stdin  bool                            // whether it reads commands
	ready  func(ctx context.Context) error // asked until it answers nil
}

// process runs a command, at most once at a time. Every server embeds one.
type process struct {
	command command

	mu  sync.Mutex
	run *run
}

// run is one life of a process.
type run struct {
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	lifeline *lifeline
	done     chan struct{} // closed when the process has ended and nothing of its group is left
	err      error         // of Wait; set before done is closed
}

// start runs the command and waits until it is ready. ctx bounds the start, not the life.
func (p *process) start(ctx context.Context) error {
	life, err := p.replaceRun()
	if err == nil {
		err = p.awaitReady(ctx, life)
	}
	if err != nil {
		return fmt.Errorf("start %s: %w", p.command.name, err)
	}
	return nil
}

func (p *process) replaceRun() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.run.alive() {
		return nil, errors.New("it is running")
	}
	life, err := launch(p.command)
	if err == nil {
		p.run = life
	}
	return life, err
}

// awaitReady leaves no process behind when it fails.
func (p *process) awaitReady(ctx context.Context, life *run) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startWithin, fmt.Errorf("not ready after %s", startWithin))
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for p.command.ready(ctx) != nil {
		select {
		case <-life.done:
			return fmt.Errorf("it ended (%s)%s", life.cmd.ProcessState, p.command.tail())
		case <-ctx.Done():
			life.signal(syscall.SIGKILL)
			<-life.done
			return fmt.Errorf("%w%s", context.Cause(ctx), p.command.tail())
		case <-again.C:
		}
	}
	return nil
}

// Pid is the process id of the server itself, 0 when it does not run.
func (p *process) Pid() int {
	if life := p.current(); life.alive() {
		return life.cmd.Process.Pid
	}
	return 0
}

// Exited is closed when the server's present run has ended, for whatever reason.
func (p *process) Exited() <-chan struct{} { return p.current().done }

// Stop asks the server to end (SIGTERM) and waits for it. A server that is not gone after
// half a minute is killed, which is an error. Stopping twice is fine.
func (p *process) Stop() error {
	life := p.current()
	if !life.alive() {
		return nil
	}
	life.signal(syscall.SIGCONT)
	_ = life.cmd.Process.Signal(syscall.SIGTERM) // what it started is its own to end
	return p.awaitEnd(life)
}

func (p *process) awaitEnd(life *run) error {
	select {
	case <-life.done:
		return nil
	case <-time.After(stopWithin):
		life.signal(syscall.SIGKILL)
		<-life.done
		return fmt.Errorf("stop %s: killed, as it did not end within %s%s", p.command.name, stopWithin, p.command.tail())
	}
}

// Kill ends the server and all that it started with SIGKILL, as a crash would, and waits.
func (p *process) Kill() {
	life := p.current()
	life.signal(syscall.SIGKILL)
	<-life.done
}

// Restart stops the server if it runs, and starts it on the same port and data.
func (p *process) Restart(ctx context.Context) error {
	if err := p.Stop(); err != nil {
		return err
	}
	return p.start(ctx)
}

// Pause freezes the server (SIGSTOP): connections stay open and nothing answers.
func (p *process) Pause() { p.current().signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (p *process) Resume() { p.current().signal(syscall.SIGCONT) }

func (p *process) current() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// launch starts the process as the leader of a group of its own. The thread that starts a
// process is its parent to Linux's "signal at the parent's death", so a goroutine locked to
// its thread starts it and stays with it to the end.
func launch(c command) (*run, error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, err
	}
	output, err := os.OpenFile(filepath.Join(c.dir, c.output), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	life := &run{cmd: exec.Command(c.path, c.args...), done: make(chan struct{})}
	life.cmd.Dir, life.cmd.Env = c.dir, c.env
	life.cmd.Stderr = io.MultiWriter(output, cmp.Or[io.Writer](c.log, io.Discard))
	life.cmd.Stdout = cmp.Or(c.facts, life.cmd.Stderr)
	if c.stdin {
		if life.stdin, err = life.cmd.StdinPipe(); err != nil {
			return nil, errors.Join(err, output.Close())
		}
	}
	life.cmd.SysProcAttr = endWithParent()
	life.cmd.WaitDelay = time.Second // what the server started may hold its output open

	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer output.Close()
		err := life.cmd.Start()
		if err == nil {
			life.lifeline, err = tie(life.cmd)
		}
		started <- err
		if err == nil {
			life.reap()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return life, nil
}

func (r *run) reap() {
	r.err = r.cmd.Wait()
	if errors.Is(r.err, exec.ErrWaitDelay) {
		r.err = nil
	}
	r.signal(syscall.SIGKILL) // what is left of its group
	r.lifeline.cut()
	close(r.done)
}

func (r *run) alive() bool {
	if r == nil {
		return false
	}
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}

// signal reaches the whole group, until nothing of it is left.
func (r *run) signal(sig syscall.Signal) {
	if r.alive() {
		_ = syscall.Kill(-r.cmd.Process.Pid, sig)
	}
}

// tail is the end of the output, to be shown below an error.
func (c command) tail() string {
	const most = 4 << 10
	path := filepath.Join(c.dir, c.output)
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return ""
	}
	return fmt.Sprintf("\n--- end of %s ---\n%s", path, text[max(0, len(text)-most):])
}
