package servers

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
)

// Ports are picked below those that systems hand out by themselves (from 32768 on Linux), so
// that no outgoing connection of anybody sits on the port of a server that is down for a moment.
const (
	firstPort = 20000
	lastPort  = 29999
)

// taken holds the lock files of this process's ports; closing one would give its port away.
var taken struct {
	sync.Mutex
	locks map[int]*os.File
}

// FreePort picks a port of 127.0.0.1 that nobody listens on and that no other process using
// this package gets. It is reserved until this process ends, so a server may leave it and
// come back. Locks that the kernel drops with the process make that hold between processes.
func FreePort() (int, error) {
	folder := filepath.Join(Cache(), "ports")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, fmt.Errorf("reserve port: %w", err)
	}
	taken.Lock()
	defer taken.Unlock()
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		if taken.locks[port] != nil {
			continue
		}
		lock, err := lockPort(folder, port)
		if err != nil {
			return 0, err
		}
		if lock == nil {
			continue
		}
		if taken.locks == nil {
			taken.locks = map[int]*os.File{}
		}
		taken.locks[port] = lock
		return port, nil
	}
	return 0, errors.New("reserve port: none is free from 20000 to 29999")
}

// lockPort returns nil without an error when the port is somebody else's.
func lockPort(folder string, port int) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(folder, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("reserve port: %w", err)
	}
	if syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil || portFree(port) != nil {
		return nil, lock.Close()
	}
	return lock, nil
}

// choosePort is port itself, or a free one when it is 0.
func choosePort(port int) (int, error) {
	if port == 0 {
		return FreePort()
	}
	return port, portFree(port)
}

func portFree(port int) error {
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return fmt.Errorf("use port %d: %w", port, err)
	}
	return listener.Close()
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
