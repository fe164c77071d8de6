package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// datasync makes contents and size durable, but not the times of the file.
func datasync(f *os.File) error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return os.NewSyscallError("fdatasync", err)
	}
}
