package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// appender is the file that a segment is written to.
type appender interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	// Sync makes the contents and the size durable.
	Sync() error
}

// disk is what the journal does to its directory; tests let it fail.
type disk struct {
	open    func(path string, flag int) (appender, error)
	rename  func(from, to string) error
	remove  func(path string) error
	syncDir func(dir string) error
}

func realDisk() disk {
	return disk{open: openFile, rename: os.Rename, remove: os.Remove, syncDir: syncDir}
}

type osFile struct{ *os.File }

func openFile(path string, flag int) (appender, error) {
	f, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

// The methods leave the path out of their errors: the file got its name after it
// was opened.

func (f osFile) WriteAt(b []byte, off int64) (int, error) {
	n, err := f.File.WriteAt(b, off)
	return n, withoutPath(err)
}

func (f osFile) Truncate(size int64) error { return withoutPath(f.File.Truncate(size)) }

// Sync is cheaper than that of os.File, which writes the times of the file too.
func (f osFile) Sync() error { return withoutPath(datasync(f.File)) }

func withoutPath(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// makeDir makes a directory, and those above it, durably: a journal whose
// directory is forgotten is lost with it.
func (d disk) makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil // if it is a file, locking will tell
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := d.makeDir(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.syncDir(above)
}

// syncDir makes the names in a directory durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("open directory: %w", err)
	}
	defer d.Close() //nolint:errcheck // only read from
	if err := d.Sync(); err != nil {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
