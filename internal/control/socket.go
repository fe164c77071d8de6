package control

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	socketName = "bridge.sock"
	// longestPath is what the name of a unix socket may have in bytes, with room.
	longestPath = 100
	// farewell is how long requests may take that are under way at the end.
	farewell = 2 * time.Second
)

// Listen opens the socket in a folder, with mode 0600. The caller holds the folder's
// lock, so a socket that is there is left over from a bridge that was killed.
func Listen(ctx context.Context, dir string) (net.Listener, error) {
	if err := os.Remove(filepath.Join(dir, socketName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("remove old socket: %w", err)
	}
	path, free, err := reachable(dir)
	if err != nil {
		return nil, err
	}
	before := unix.Umask(0o177) // at no moment may others connect
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	unix.Umask(before)
	if err != nil {
		free()
		return nil, fmt.Errorf("listen in %s: %w", dir, err)
	}
	return &socket{listener, free}, nil
}

// socket lets go of the folder when it is closed.
type socket struct {
	net.Listener
	free func()
}

func (s *socket) Close() error {
	err := s.Listener.Close()
	s.free()
	return err
}

// reachable is a name of the socket that is short enough: of a folder far down, by way
// of an open file.
func reachable(dir string) (path string, free func(), err error) {
	path = filepath.Join(dir, socketName)
	if len(path) <= longestPath {
		return path, func() {}, nil
	}
	folder, err := os.Open(dir)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", folder.Fd(), socketName), func() { _ = folder.Close() }, nil
}

// Serve answers at a listener until ctx ends, and closes it.
func (d *Desk) Serve(ctx context.Context, listener net.Listener, log *slog.Logger) error {
	mux := http.NewServeMux()
	d.Register(mux)
	registerProfiles(mux)
	if d.Rest != nil {
		mux.Handle("/", d.Rest)
	}
	server := &http.Server{
		Handler: mux, ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx }, // ends the answers that have no end of their own
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	select {
	case err := <-ended:
		return fmt.Errorf("serve commands: %w", err)
	case <-ctx.Done():
	}
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if server.Shutdown(leaving) != nil {
		_ = server.Close() // whoever is still connected was told long enough
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve commands: %w", err)
	}
	return nil
}
