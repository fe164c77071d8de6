package configs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sparkbridge/sinks"
	"sparkbridge/sinks/sinktest"
)

// sourceWith is a right configuration whose source has other keys, and a connection string
// with more in it.
func sourceWith(parameters, keys string) string {
	text := strings.Replace(good, "user_id=etl", parameters+"user_id=etl", 1)
	return strings.Replace(text, "sinks:", "    "+keys+"\nsinks:", 1)
}

// tls turns TLS on, wherever the connection string comes from; nothing may contradict it.
func TestTLSOfASource(t *testing.T) {
	const line = "f:4:20: "
	for _, c := range []struct{ parameters, keys, want string }{
		{"", "tls: {enabled: true}", ""},
		{"", "tls: {ca_file: x}", ""},
		{"use_ssl=true;", "tls: {ca_file: x}", ""},
		{"token=abc;", "tls: {ca_file: x}", ""},
		{"use_ssl=false;", "tls: {enabled: false}", ""},
		{"", "tls: {enabled: false}", ""},
		{"use_ssl=false;", "tls: {ca_file: x}", `f:3:13: sources[0].remote: use_ssl "false" contradicts tls, which asks for TLS; leave use_ssl out, or take tls out`},
		{"use_ssl=false;", "tls: {enabled: true}", `f:3:13: sources[0].remote: use_ssl "false" contradicts tls, which asks for TLS; leave use_ssl out, or take tls out`},
		{"use_ssl=true;", "tls: {enabled: false}", line + "sources[0].tls.enabled: is false, and remote turns TLS on, by use_ssl or by a token for another machine: set it to true, or take it out"},
		{"token=abc;", "tls: {enabled: false}", line + "sources[0].tls.enabled: is false, and remote turns TLS on, by use_ssl or by a token for another machine: set it to true, or take it out"},
		{"", "tls: {enabled: false, ca_file: x}", line + "sources[0].tls.enabled: is false, and ca_file would turn TLS on: set it to true, or take that out"},
		{"", "tls: {key_file: x}", "f:4:10: sources[0].tls.cert_file: is missing; set it to the certificate of key_file, or leave both out"},
		{"", "tls: {ca: x}", "f:4:11: sources[0].tls.ca: is an unknown key"},
	} {
		got := strings.Join(problemsOf(t, sourceWith(c.parameters, c.keys), environment(nil, nil)), "\n")
		if got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s%s:\ngot  %s\nwant %s", c.parameters, c.keys, got, c.want)
		}
	}
}

// The remote that the bridge connects to has what tls says, from a file too.
func TestTLSReachesTheRemote(t *testing.T) {
	want := sinks.TLS{CAFile: "x"}
	cfg := parse(t, sourceWith("", "tls: {ca_file: x}"))
	remote, err := cfg.Sources[0].ParsedRemote()
	if err != nil || !remote.UseSSL || remote.TLS != (security{want}) {
		t.Errorf("of a string: %v, %#v, %v", remote, remote.TLS, err)
	}
	file := filepath.Join(t.TempDir(), "remote")
	for text, ok := range map[string]bool{"sc://spark": true, "sc://spark/;use_ssl=true": true, "sc://spark/;use_ssl=false": false} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s := Source{RemoteFile: file, TLS: want, CreateSession: true}
		remote, _, err := s.ReadRemote()
		if (err == nil) != ok || ok && (!remote.UseSSL || remote.TLS != (security{want})) {
			t.Errorf("of a file with %s: %v, %#v, %v", text, remote, remote.TLS, err)
		}
	}
}

// The files of tls are read at the start as those of sinks are, and found in the same folder.
func TestFilesThatSourcesCannotUse(t *testing.T) {
	ours := sinktest.NewAuthority(t)
	certFile, keyFile := ours.IssueFor(t, "bridge", time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	dir := folder(t, map[string]string{
		"wrong.yaml": sourceWith("", "tls: {ca_file: none.pem}"),
		"old.yaml":   sourceWith("", "tls: {cert_file: "+certFile+", key_file: "+keyFile+"}"),
	})
	_, err := Load(filepath.Join(dir, "wrong.yaml"))
	same(t, linesOf(err, dir), []string{"…/wrong.yaml:4:20: sources[0].tls.ca_file: …/none.pem: there is no such file; put it there, or correct the path"})
	if _, err := Look(filepath.Join(dir, "wrong.yaml")); err != nil {
		t.Errorf("to who only looks for a bridge: %v", err)
	}
	cfg, err := Load(filepath.Join(dir, "old.yaml"))
	if err != nil || len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0].Error(), "sources[0].tls.cert_file: "+certFile+": is out of date") {
		t.Errorf("of a certificate that has ended: %v, %v", cfg, err)
	}
}

// A server that hangs up without a word may want a certificate, or another one.
func TestAdviceForAServerThatHangsUp(t *testing.T) {
	for _, err := range []error{io.EOF, syscall.EPIPE, syscall.ECONNRESET} {
		err = fmt.Errorf("read: %w", err)
		without, with := security{}, security{sinks.TLS{CertFile: "c", KeyFile: "k"}}
		if got := without.Advice(err); !strings.Contains(got, "set tls.cert_file and tls.key_file") {
			t.Errorf("%v without a certificate: %q", err, got)
		}
		if got := with.Advice(err); !strings.Contains(got, "the certificate of tls.cert_file") {
			t.Errorf("%v with one: %q", err, got)
		}
	}
	if got := (security{}).Advice(syscall.ECONNREFUSED); got != "" {
		t.Errorf("of a refused connection: %q", got)
	}
}
