package connect

import (
	"crypto/tls"
	"errors"
	"testing"
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
