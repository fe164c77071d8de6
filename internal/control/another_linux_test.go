package control

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sparkbridge/internal/usertest"
)

// Who may not open the socket is told why: another user than the bridge's.
func TestAnothersSocket(t *testing.T) {
	dir := usertest.Folder(t)
	serve(t, dir, newStub())
	ask := func() (err error) {
		usertest.AsNobody(t, func() {
			var conn net.Conn
			if conn, err = call(t.Context(), dir); err == nil {
				_ = conn.Close()
			}
		})
		return err
	}
	if err := ask(); err == nil || errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), "only the user that the bridge in "+dir+" runs as") {
		t.Errorf("asked by another user: %v", err)
	}
	if err := os.Chmod(filepath.Join(dir, socketName), 0o666); err != nil { //nolint:gosec // to see that nothing else is in the way
		t.Fatal(err)
	}
	if err := ask(); err != nil {
		t.Errorf("asked by another user, who may: %v", err)
	}
}

// And so is an owner who has taken the right from himself.
func TestAClosedSocket(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may open every socket; TestAnothersSocket has the same for root")
	}
	dir := t.TempDir()
	serve(t, dir, newStub())
	if err := os.Chmod(filepath.Join(dir, socketName), 0); err != nil {
		t.Fatal(err)
	}
	if answer, err := get(t, dir, "/"); err == nil {
		answer.Body.Close()
		t.Error("it was opened")
	} else if errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(), "only the user that the bridge") {
		t.Error(err)
	}
}
