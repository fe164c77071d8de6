package sinks

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// maxFileBytes bounds the files that a configuration names: certificates and secrets.
const maxFileBytes = 1 << 20

// ReadFile reads a small file that a configuration names, links followed. What is no
// file but a pipe, a device or a folder is refused and not opened: reading it may
// never end. The errors say what to do, without the path, and are those of package fs
// where that has one.
func ReadFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(err)
	}
	switch {
	case info.IsDir():
		return nil, errors.New("is a folder; name a file in it")
	case !info.Mode().IsRegular():
		return nil, errors.New("is a pipe or a device; name a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err)
	}
	defer f.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, unreadable(err)
	case len(data) > maxFileBytes: // a file of the kernel's may tell no size
		return nil, fmt.Errorf("has more than %d bytes; see whether this is the right file", maxFileBytes)
	}
	return data, nil
}

// unreadable says what to do about an error of the file system, whose own text would
// repeat the path.
func unreadable(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return advised{"there is no such file; put it there, or correct the path", err}
	case errors.Is(err, fs.ErrPermission):
		return advised{"may not be read; let the user that the bridge runs as read it", err}
	}
	var named *fs.PathError
	if errors.As(err, &named) {
		err = named.Err
	}
	return fmt.Errorf("cannot be read (%w)", err)
}

// advised is an error in other words.
type advised struct {
	text string
	err  error
}

func (a advised) Error() string { return a.text }
func (a advised) Unwrap() error { return a.err }

// FileError is a file that cannot be used for what a key of the configuration names it.
type FileError struct {
	Key  string // below the destination, such as tls.ca_file
	Path string
	Err  error // why, with the next step; it shows nothing of what is in the file
}

// Error is one line: key: path: why.
func (e *FileError) Error() string { return e.Key + ": " + e.Path + ": " + e.Err.Error() }

func (e *FileError) Unwrap() error { return e.Err }

// ErrOutdated is the reason of a FileError that keeps nobody from starting: the file
// is right but for its dates, which the other side may see otherwise.
var ErrOutdated = errors.New("is out of date")
