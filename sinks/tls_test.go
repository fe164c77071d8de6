package sinks_test

import (
	"crypto/tls"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sparkbridge/sinks"
	"sparkbridge/sinks/sinktest"
)

// handshake connects to a server and hears a word from it.
func handshake(t *testing.T, client, server *tls.Config) error {
	t.Helper()
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if conn, err := listener.Accept(); err == nil {
			_, _ = conn.Write([]byte("!"))
			_, _ = io.Copy(io.Discard, conn)
			_ = conn.Close()
		}
	}()
	defer func() {
		_ = listener.Close()
		<-ended
	}()
	conn, err := tls.Dial("tcp", listener.Addr().String(), client)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Read(make([]byte, 1))
	return err
}

// Each case is refused with its next step, but the first two.
func TestTLSHandshakes(t *testing.T) {
	ours, theirs := sinktest.NewAuthority(t), sinktest.NewAuthority(t)
	open := ours.Server(t, "broker.test")
	strict := open.Clone()
	strict.ClientAuth = tls.RequireAndVerifyClientCert
	for name, c := range map[string]struct {
		client sinks.TLS
		server *tls.Config
		advice string // empty: it works
	}{
		"own authority":       {sinks.TLS{CAFile: ours.File}, open, ""},
		"own certificate":     {ours.Client(t, "bridge"), strict, ""},
		"unknown authority":   {sinks.TLS{CAFile: theirs.File}, open, "set tls.ca_file"},
		"machine's trust":     {sinks.TLS{Enabled: true}, open, "set tls.ca_file"},
		"other name":          {sinks.TLS{CAFile: ours.File, ServerName: "other.test"}, open, "tls.server_name"},
		"no certificate":      {sinks.TLS{CAFile: ours.File}, strict, "set tls.cert_file and tls.key_file"},
		"foreign certificate": {sinks.TLS{CAFile: ours.File, CertFile: theirs.Client(t, "x").CertFile, KeyFile: "same"}, strict, "set tls.cert_file and tls.key_file"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.client.KeyFile == "same" {
				c.client.KeyFile = filepath.Join(filepath.Dir(c.client.CertFile), "key.pem")
			}
			config, err := c.client.Config()
			if err != nil {
				t.Fatal(err)
			}
			err = handshake(t, config, c.server)
			if (err == nil) != (c.advice == "") {
				t.Fatalf("handshake: %v", err)
			}
			if advice := sinks.TLSAdvice(err); !strings.Contains(advice, c.advice) || (advice == "") != (c.advice == "") {
				t.Errorf("advice %q for %v", advice, err)
			}
		})
	}
}

// A certificate that was renewed in its file is shown at the next handshake.
func TestTLSTakesRenewedCertificates(t *testing.T) {
	ours, theirs := sinktest.NewAuthority(t), sinktest.NewAuthority(t)
	server := ours.Server(t, "broker.test")
	server.ClientAuth = tls.RequireAndVerifyClientCert
	client := theirs.Client(t, "bridge")
	client.CAFile = ours.File
	config, err := client.Config()
	if err != nil {
		t.Fatal(err)
	}
	if err := handshake(t, config, server); err == nil {
		t.Fatal("a foreign certificate was taken")
	}
	certFile, keyFile := ours.Issue(t, "bridge")
	for to, from := range map[string]string{client.CertFile: certFile, client.KeyFile: keyFile} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	if err := handshake(t, config, server); err != nil {
		t.Errorf("the renewed certificate is not shown: %v", err)
	}
}

func TestTLSValidate(t *testing.T) {
	for want, c := range map[string]sinks.TLS{
		"tls.key_file: is missing":  {CertFile: "a"},
		"tls.cert_file: is missing": {KeyFile: "a"},
	} {
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	good := sinks.TLS{CertFile: "a", KeyFile: "b"}
	if err := good.Validate(); err != nil || !good.Wanted() || (sinks.TLS{}).Wanted() {
		t.Errorf("%v", err)
	}
}
