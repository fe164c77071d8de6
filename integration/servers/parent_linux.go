package servers

import "syscall"

// endWithParent gives the process a group of its own and has Linux kill it when the thread
// that started it ends.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
