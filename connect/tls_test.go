package connect

import (
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"
)

// trust stands for the files of a configuration.
type trust struct{ name string }

func (trust) Config() (*tls.Config, error) { return &tls.Config{MinVersion: tls.VersionTLS12}, nil }
func (trust) Advice(error) string          { return "" }

// What one session trusts, or shows, is no matter of another one on the same server.
func TestSessionsShareAConnectionOnlyWithTheSameTLS(t *testing.T) {
	client := NewClient(ClientOptions{})
	linkOf := func(remote string, tls TLS) *link {
		t.Helper()
		r, err := ParseRemote(remote)
		if err == nil && tls != nil {
			r, err = r.WithTLS(tls)
		}
		if err != nil {
			t.Fatal(err)
		}
		s, err := client.Session(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s.link
	}
	all := []*link{
		linkOf("sc://spark", nil), linkOf("sc://spark/;use_ssl=true", nil), linkOf("sc://spark", trust{"a"}), linkOf("sc://spark", trust{"b"}),
	}
	same := []*link{
		linkOf("sc://spark", nil), linkOf("sc://spark/;token=abc", nil), linkOf("sc://spark/;use_ssl=true", trust{"a"}), linkOf("sc://spark", trust{"b"}),
	}
	for i, l := range all {
		for j, other := range same {
			if (l == other) != (i == j) {
				t.Errorf("%d and %d share a connection: %t", i, j, l == other)
			}
		}
	}
}

func TestTLSAgainstUseSSL(t *testing.T) {
	r, err := ParseRemote("sc://localhost/;use_ssl=false;token=abc")
	if err != nil {
		t.Fatal(err)
	}
	var wrong *RemoteError
	if _, err := r.WithTLS(trust{}); !errors.As(err, &wrong) || wrong.Part != "use_ssl" {
		t.Errorf("use_ssl=false with TLS: %v", err)
	}
	silent, err := ParseRemote("sc://localhost/;token=abc")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := silent.WithTLS(trust{}); err != nil || !r.UseSSL {
		t.Errorf("TLS on this machine: %v, %v", r, err)
	}
}

// refused is a connection that the server has closed, and told why.
type refused struct {
	net.Conn
	reason error
}

func (refused) Write([]byte) (int, error)       { return 0, syscall.EPIPE }
func (r refused) Read([]byte) (int, error)      { return 0, r.reason }
func (refused) SetReadDeadline(time.Time) error { return nil }

// knowing has advice about one error.
type knowing struct {
	trust
	about error
}

func (k knowing) Advice(err error) string {
	if errors.Is(err, k.about) {
		return "do this"
	}
	return ""
}

// Whether the end of a connection shows by reading or by writing, the reason is the same.
func TestReasonOfAServerThatHangsUp(t *testing.T) {
	alert := errors.New("certificate required")
	for name, c := range map[string]struct {
		reason, about error
		heard         bool
		want          string
	}{
		"told":                 {alert, alert, false, "certificate required; do this"},
		"told something else":  {errors.New("reset"), syscall.EPIPE, false, "broken pipe; do this"},
		"after the first word": {alert, alert, true, "broken pipe"},
	} {
		g := &greeted{Conn: refused{reason: c.reason}, tls: knowing{about: c.about}}
		g.heard.Store(c.heard)
		if _, err := g.Write([]byte("x")); err == nil || err.Error() != c.want {
			t.Errorf("%s: write fails with %v, want %s", name, err, c.want)
		}
		if _, err := g.Read(nil); !errors.Is(err, c.reason) || strings.HasSuffix(err.Error(), "; do this") != (errors.Is(c.reason, c.about) && !c.heard) {
			t.Errorf("%s: read fails with %v", name, err)
		}
	}
}
