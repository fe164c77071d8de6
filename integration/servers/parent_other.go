//go:build unix && !linux

package servers

import "syscall"

// endWithParent gives the process a group of its own; only its lifeline ties it to this program.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
