package journal

import (
	"os"
	"sync/atomic"
	"testing"
)

// faults is a disk that does what the real one does unless a func says
// otherwise. The funcs are set while no Append runs.
type faults struct {
	write    func(f appender, b []byte, off int64) (int, error)
	sync     func() error
	truncate func() error
	open     func(path string) error
	rename   func() error
	remove   func(path string) error
	syncDir  func(dir string) error

	syncs atomic.Int64
}

func (f *faults) disk() disk {
	real := realDisk()
	return disk{
		open: func(path string, flag int) (appender, error) {
			if f.open != nil {
				if err := f.open(path); err != nil {
					return nil, err
				}
			}
			file, err := real.open(path, flag)
			return faultyFile{file, f}, err
		},
		rename: func(from, to string) error {
			if f.rename != nil {
				if err := f.rename(); err != nil {
					return err
				}
			}
			return os.Rename(from, to)
		},
		remove: func(path string) error {
			if f.remove != nil {
				if err := f.remove(path); err != nil {
					return err
				}
			}
			return os.Remove(path)
		},
		syncDir: func(dir string) error {
			if f.syncDir != nil {
				if err := f.syncDir(dir); err != nil {
					return err
				}
			}
			return syncDir(dir)
		},
	}
}

type faultyFile struct {
	appender
	f *faults
}

func (a faultyFile) WriteAt(b []byte, off int64) (int, error) {
	if a.f.write != nil {
		return a.f.write(a.appender, b, off)
	}
	return a.appender.WriteAt(b, off)
}

func (a faultyFile) Sync() error {
	a.f.syncs.Add(1)
	if a.f.sync != nil {
		if err := a.f.sync(); err != nil {
			return err
		}
	}
	return a.appender.Sync()
}

func (a faultyFile) Truncate(size int64) error {
	if a.f.truncate != nil {
		if err := a.f.truncate(); err != nil {
			return err
		}
	}
	return a.appender.Truncate(size)
}

func openFaulty(t testing.TB, dir string, o Options, f *faults) *Journal {
	t.Helper()
	j, err := open(dir, o, f.disk())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}
