package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const lockName = "lock"

// lockDir takes the directory for this Journal until the file is closed, which
// the kernel does for a process that dies. The file itself is never removed:
// two processes could then hold locks of two files of the same name.
func lockDir(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("write to journal directory %s (journal.dir must name a directory that this user may write to): %w", dir, err)
	}
	if err := flock(f, unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	// The pid is for people only; failing to note it is no reason to stop.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

// lockToLook keeps writers out of the directory until unlock is called, and changes
// nothing in it. One without a lock, a copy, is nobody's.
func lockToLook(dir string) (unlock func(), err error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if errors.Is(err, fs.ErrNotExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := flock(f, unix.LOCK_SH); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // nothing was written
}

func flock(f *os.File, kind int) error {
	err := unix.Flock(int(f.Fd()), kind|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return fmt.Errorf("lock %s%s: %w: stop the other bridge or give this one a journal.dir of its own", filepath.Dir(f.Name()), holder(f.Name()), ErrLocked)
	case err != nil:
		return fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return nil
}

// held returns ErrGone when the directory has another lock than ours by now, or none.
func (j *Journal) held() error {
	ours, err := j.lock.Stat()
	if err != nil {
		return fmt.Errorf("look at lock: %w", err)
	}
	path := filepath.Join(j.dir, lockName)
	found, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: %s has vanished", ErrGone, path)
	case err != nil:
		return fmt.Errorf("look at lock: %w", err)
	case !os.SameFile(ours, found):
		return fmt.Errorf("%w: %s is another file", ErrGone, path)
	}
	return nil
}

// holder says which process has the lock, as far as the file tells.
func holder(path string) string {
	b, err := os.ReadFile(path)
	pid, perr := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || perr != nil {
		return ""
	}
	return fmt.Sprintf(" (held by process %d)", pid)
}
