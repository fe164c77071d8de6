package bridge

import (
	"net"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/connect/connecttest"
)

// systemd is the receiver of notifications, on a real socket.
type systemd struct {
	t      *testing.T
	socket *net.UnixConn
}

func newSystemd(t *testing.T) *systemd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return &systemd{t, socket}
}

// told is what it was told, up to a last word.
func (s *systemd) told(last string) (all []string) {
	s.t.Helper()
	if err := s.socket.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	for text := make([]byte, 100); len(all) == 0 || all[len(all)-1] != last; {
		n, err := s.socket.Read(text)
		if err != nil {
			s.t.Fatalf("%v; so far it was told %q", err, all)
		}
		all = append(all, string(text[:n]))
	}
	return all
}

// A bridge says that it is ready when it runs, Spark or no Spark, and that it stops
// when it is asked to.
func TestSystemdIsTold(t *testing.T) {
	s := newSystemd(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.start()
		after(time.Minute)
		w.halt()
	})
	if told := s.told(notifyStopping); !slices.Equal(told, []string{"READY=1", "STOPPING=1"}) {
		t.Errorf("systemd was told %q", told)
	}
}

// So does one that ends of itself.
func TestSystemdIsToldOfAnEnd(t *testing.T) {
	s := newSystemd(t)
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		job := w.job(query("a"))
		w.start()
		after(time.Minute)
		job.Close()
		if err := w.wait(); err == nil {
			t.Error("it did not end")
		}
	})
	if told := s.told(notifyStopping); !slices.Equal(told, []string{"READY=1", "STOPPING=1"}) {
		t.Errorf("systemd was told %q", told)
	}
}
