package configs

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"sparkbridge/sinks/sinktest"
)

// folder is a folder with files in it, by their names, and folders between.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// linesOf are the lines of an error, without the folder in them.
func linesOf(err error, dir string) []string {
	if err == nil {
		return nil
	}
	return strings.Split(strings.ReplaceAll(err.Error(), dir, "…"), "\n")
}

// Files that cannot be used are wrong configuration, all of them told at once, each at
// its key. Whoever only looks for a bridge that runs does not mind.
func TestFilesThatSinksCannotUse(t *testing.T) {
	ours := sinktest.NewAuthority(t)
	certFile, keyFile := ours.Issue(t, "bridge")
	_, otherKey := ours.Issue(t, "other")
	dir := folder(t, map[string]string{"junk": "hunter2", "bridge.yaml": `sources:
  - {name: etl, remote_file: pipe}
  - {name: new, remote_file: not-there-yet}
sinks:
  - {name: a, nats: {url: nats://h, creds_file: none.creds}}
  - {name: b, nats: {url: nats://h, nkey_file: junk, tls: {ca_file: none.pem}}}
  - {name: c, kafka: {brokers: ["h:1"], tls: {cert_file: "` + certFile + `", key_file: "` + otherKey + `"}}}
  - {name: d, webhook: {url: https://h, tls: {ca_file: junk, cert_file: ".", key_file: "` + keyFile + `"}}}
  - {name: e, webhook: {url: https://h, tls: {ca_file: "` + ours.File + `", cert_file: "` + certFile + `", key_file: "` + keyFile + `"}}}
  - {name: f, webhook: {url: https://h, tls: {cert_file: none.pem}}}
`})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "bridge.yaml")
	_, err := Load(path)
	const missing = "there is no such file; put it there, or correct the path"
	same(t, linesOf(err, dir), []string{
		"…/bridge.yaml:2:30: sources[0].remote_file: …/pipe: is a pipe or a device; name a file",
		"…/bridge.yaml:5:49: sinks[0].nats.creds_file: …/none.creds: " + missing,
		"…/bridge.yaml:6:48: sinks[1].nats.nkey_file: …/junk: has no seed of a user in it; it must be a file with the seed of a user, which begins with SU",
		"…/bridge.yaml:6:69: sinks[1].nats.tls.ca_file: …/none.pem: " + missing,
		"…/bridge.yaml:7:" + at(t, path, 7, otherKey) + ": sinks[2].kafka.tls.key_file: " + otherKey + ": is not the key of the first certificate in " + certFile + " (tls: private key does not match public key); set both to one pair",
		"…/bridge.yaml:8:56: sinks[3].webhook.tls.ca_file: …/junk: has no certificate in it; it must be a PEM file",
		"…/bridge.yaml:8:73: sinks[3].webhook.tls.cert_file: …: is a folder; name a file in it",
		"…/bridge.yaml:10:46: sinks[5].webhook.tls.key_file: is missing; set it to the key of cert_file, or leave both out",
		"…/bridge.yaml:10:58: sinks[5].webhook.tls.cert_file: …/none.pem: " + missing,
	})
	_, err = Look(path)
	same(t, linesOf(err, dir), []string{"…/bridge.yaml:10:46: sinks[5].webhook.tls.key_file: is missing; set it to the key of cert_file, or leave both out"})
}

// at is the column at which a quoted text stands in a line of a file.
func at(t *testing.T, path string, line int, text string) string {
	t.Helper()
	all, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(strings.Split(string(all), "\n")[line-1], `"`+text)
	return textOf(reflect.ValueOf(len(before) + 1))
}

// A certificate that is out of date is a warning: the server may see that otherwise.
func TestWarnings(t *testing.T) {
	ours := sinktest.NewAuthority(t)
	certFile, keyFile := ours.IssueFor(t, "bridge", time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
	path := filepath.Join(folder(t, map[string]string{"bridge.yaml": strings.Replace(good, "nats: {", "nats: {tls: {cert_file: "+certFile+", key_file: "+keyFile+"}, ", 1)}), "bridge.yaml")
	cfg, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Warnings) != 1 || !strings.HasPrefix(cfg.Warnings[0].Error(), path+":6:29: sinks[0].nats.tls.cert_file: "+certFile+": is out of date: the certificate ended on ") {
		t.Errorf("warnings %v", cfg.Warnings)
	}
	if text, err := cfg.MarshalJSON(); err != nil || strings.Contains(string(text), "out of date") {
		t.Errorf("the warnings are a part of what the configuration amounts to: %s, %v", text, err)
	}
}

// Relative paths start at the folder of the file, wherever the program was started, so
// that every command finds the same journal. Others are left as they are.
func TestRelativePaths(t *testing.T) {
	dir := folder(t, map[string]string{"etc/secret": "s3cret\n", "etc/bridge.yaml": `sources:
  - {name: a, remote_file: spark/etl, token: "${file:secret}"}
  - {name: b, remote_file: /run/spark/etl}
journal: {dir: ../data}
sinks:
  - {name: n, nats: {url: nats://h, creds_file: user.creds}}
  - {name: k, kafka: {brokers: ["h:1"], tls: {ca_file: ./ca.pem}}}
  - {name: w, webhook: {url: https://h, tls: {cert_file: "${NO_SUCH_NAME:-cert.pem}", key_file: /key.pem}}}
`, "etc/default.yaml": good})
	got := func(path string) *Config {
		t.Helper()
		cfg, err := Look(path)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	cfg := got(filepath.Join(dir, "etc/bridge.yaml"))
	for want, path := range map[string]string{
		dir + "/etc/spark/etl": cfg.Sources[0].RemoteFile, "s3cret": cfg.Sources[0].Token.Reveal(), "/run/spark/etl": cfg.Sources[1].RemoteFile,
		dir + "/data": cfg.Journal.Dir, dir + "/etc/user.creds": cfg.Sinks[0].NATS.CredsFile, dir + "/etc/ca.pem": cfg.Sinks[1].Kafka.TLS.CAFile,
		dir + "/etc/cert.pem": cfg.Sinks[2].Webhook.TLS.CertFile, "/key.pem": cfg.Sinks[2].Webhook.TLS.KeyFile, "": cfg.Sinks[2].Webhook.TLS.CAFile,
		dir + "/etc/bridge-data": got(filepath.Join(dir, "etc/default.yaml")).Journal.Dir,
	} {
		if path != want {
			t.Errorf("%q leads to %q", want, path)
		}
	}
	t.Chdir(filepath.Join(dir, "etc"))
	if dir := got("default.yaml").Journal.Dir; dir != "bridge-data" {
		t.Errorf("of a file in the working directory the journal is in %q", dir)
	}
	t.Chdir(dir)
	if dir := got("etc/default.yaml").Journal.Dir; dir != "etc/bridge-data" {
		t.Errorf("of a file named relatively the journal is in %q", dir)
	}
	flags, err := FromFlags(Flags{Remote: "sc://h/;user_id=u;session_id=" + sessionA, NATS: []string{"nats://h"}, Journal: "j"}, environment(nil, nil))
	if err != nil || flags.Journal.Dir != "j" {
		t.Errorf("without a file: %v, %v", flags, err)
	}
}

// What comes through a pipe lies in no folder: its paths start at the working directory.
func TestRelativePathsOfAPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(pipe, []byte(good), 0o600) }()
	cfg, err := Load(pipe)
	if err := errors.Join(err, <-written); err != nil {
		t.Fatal(err)
	}
	if cfg.Journal.Dir != "bridge-data" {
		t.Errorf("the journal is in %q", cfg.Journal.Dir)
	}
}

// tls: {enabled: false} beside other keys of it asks for two things.
func TestTLSThatContradictsItself(t *testing.T) {
	with := func(tls string) []string {
		return problemsOf(t, strings.Replace(good, "nats: {", "nats: {tls: {"+tls+"}, ", 1), environment(map[string]string{"OFF": "false"}, nil))
	}
	same(t, with("enabled: false, ca_file: x"), []string{"f:6:27: sinks[0].nats.tls.enabled: is false, and ca_file would turn TLS on: set it to true, or take that out"})
	same(t, with(`enabled: "${OFF}", server_name: x, cert_file: y, key_file: z`), []string{"f:6:27: sinks[0].nats.tls.enabled: is false, and cert_file and key_file and server_name would turn TLS on: set it to true, or take that out"})
	for _, right := range []string{"enabled: false", "enabled: true, ca_file: x", "ca_file: x"} {
		same(t, with(right), nil)
	}
}
