package bridge

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
)

// What systemd is told (sd_notify(3)).
const (
	notifyReady    = "READY=1"
	notifyStopping = "STOPPING=1"
)

// tellSystemd tells that the bridge runs, and that it stops as soon as running or
// stopped ends.
func tellSystemd(running, stopped context.Context, log *slog.Logger) {
	notify(running, notifyReady, log)
	select {
	case <-running.Done():
	case <-stopped.Done():
	}
	notify(running, notifyStopping, log)
}

// notify tells systemd how the service is, where it asked for that by NOTIFY_SOCKET
// (Type=notify). Nothing depends on its success.
func notify(ctx context.Context, state string, log *slog.Logger) {
	if err := notifyBy(context.WithoutCancel(ctx), os.Getenv("NOTIFY_SOCKET"), state); err != nil {
		log.Warn("systemd was not told", "state", state, "err", err)
	}
}

func notifyBy(ctx context.Context, socket, state string) error {
	if socket == "" {
		return nil
	}
	if name, abstract := strings.CutPrefix(socket, "@"); abstract {
		socket = "\x00" + name
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unixgram", socket)
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	defer conn.Close() //nolint:errcheck // a datagram is sent or not
	if _, err := conn.Write([]byte(state)); err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}
