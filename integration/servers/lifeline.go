package servers

import (
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"syscall"
)

// A lifeline kills a server's process group when this program is gone, however it went: a
// shell waits on a pipe whose other end only this program holds. It works on every Unix, and
// reaches what the server has started; on Linux the kernel's own signal stands beside it.
type lifeline struct {
	shell *exec.Cmd
	held  io.Closer
}

func tie(server *exec.Cmd) (*lifeline, error) {
	shell := exec.Command("/bin/sh", "-c", `read -r never; kill -s KILL -- "-$1"`, "lifeline", strconv.Itoa(server.Process.Pid))
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // out of reach of the terminal's Ctrl-C
	held, err := shell.StdinPipe()
	if err == nil {
		err = shell.Start()
	}
	if err != nil {
		_ = syscall.Kill(-server.Process.Pid, syscall.SIGKILL)
		_ = server.Wait()
		return nil, fmt.Errorf("start its lifeline: %w", err)
	}
	return &lifeline{shell: shell, held: held}, nil
}

// cut ends the lifeline without its effect, once the server is gone.
func (l *lifeline) cut() {
	_ = l.shell.Process.Kill()
	_ = l.shell.Wait() // also closes the pipe
}
