package servers

import (
	"net"
	"path/filepath"
	"testing"
)

func TestFreePortIsNobodyElses(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	port, err := FreePort()
	requireNoError(t, err)
	again, err := FreePort()
	requireNoError(t, err)
	if port == again {
		t.Errorf("port %d was given twice", port)
	}
	// flock belongs to an open file, so this is what another process meets.
	if lock, err := lockPort(filepath.Join(Cache(), "ports"), port); lock != nil || err != nil {
		t.Errorf("the reserved port %d could be locked: %v", port, err)
	}
}

func TestChoosePortRefusesOneInUse(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	requireNoError(t, err)
	defer listener.Close()
	if _, err := choosePort(listener.Addr().(*net.TCPAddr).Port); err == nil {
		t.Error("a port in use was taken")
	}
}
