//go:build linux

// Package usertest lets tests that run as root see what another user may do, since root
// may do everything.
package usertest

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is a user that owns nothing of ours.
const nobody = 65534

// Folder makes an empty folder that every user may enter, in the place of t.TempDir,
// which only its owner may.
func Folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "usertest-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // that is what it is for
		t.Fatal(err)
	}
	return dir
}

// AsNobody calls fn with the rights of a user that is neither root nor the owner of
// anything; goroutines that fn starts have not these rights. It skips the test if we are
// not root, and so cannot be another.
func AsNobody(t *testing.T, fn func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	runtime.LockOSThread() // the rights are those of a thread
	defer runtime.UnlockOSThread()
	become(t, nobody)
	defer become(t, 0)
	fn()
}

// become changes the effective user of this thread alone; the saved one stays root, to
// come back. The calls of package unix change all threads.
func become(t *testing.T, user int) {
	t.Helper()
	const same = ^uintptr(0)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, same, uintptr(user), same); errno != 0 {
		t.Fatalf("become user %d: %v", user, errno)
	}
}
