package sinks_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sparkbridge/sinks"
	"sparkbridge/sinks/sinktest"
)

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What is wrong with a file is told with its key, path and the next step, at the start
// and by each connection alike, and nothing of what is in it.
func TestTLSFilesThatCannotBeUsed(t *testing.T) {
	a := sinktest.NewAuthority(t)
	good := a.Client(t, "bridge")
	if err := good.CheckFiles(); err != nil {
		t.Fatalf("right files: %v", err)
	}
	junk := file(t, "hunter2")
	locked := file(t, "-----BEGIN ENCRYPTED PRIVATE KEY-----\naHVudGVyMg==\n-----END ENCRYPTED PRIVATE KEY-----\n")
	for want, c := range map[string]sinks.TLS{
		"tls.ca_file: /nowhere: there is no such file; put it there, or correct the path": {CAFile: "/nowhere"},
		"tls.ca_file: " + junk + ": has no certificate in it; it must be a PEM file":      {CAFile: junk},
		"tls.ca_file: /: is a folder":                                                                                 {CAFile: "/"},
		"tls.cert_file: /nowhere: there is no such file":                                                              {CertFile: "/nowhere", KeyFile: good.KeyFile},
		"tls.cert_file: " + good.KeyFile + ": has no certificate in it":                                               {CertFile: good.KeyFile, KeyFile: good.KeyFile},
		"tls.key_file: " + junk + ": has no private key in it; it must be a PEM file":                                 {CertFile: good.CertFile, KeyFile: junk},
		"tls.key_file: " + locked + ": is locked with a passphrase; write it without one":                             {CertFile: good.CertFile, KeyFile: locked},
		"tls.key_file: " + a.File + ": has no private key in it":                                                      {CertFile: good.CertFile, KeyFile: a.File},
		"tls.key_file: " + good.KeyFile + ": is not the key of the first certificate in " + a.File + " (tls: private": {CertFile: a.File, KeyFile: good.KeyFile},
	} {
		_, atConnect := c.Config()
		for what, err := range map[string]error{"start": c.CheckFiles(), "connection": atConnect} {
			if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s: %+v: %v, want %s", what, c, err, want)
			}
			if !errors.As(err, new(*sinks.FileError)) || errors.Is(err, sinks.ErrOutdated) {
				t.Errorf("%s: %+v: %#v is no error of a file", what, c, err)
			}
		}
	}
	all := sinks.TLS{CAFile: junk, CertFile: junk, KeyFile: junk}.CheckFiles()
	if all == nil || strings.Count(all.Error(), "\n") != 2 {
		t.Errorf("of three wrong files are told: %v", all)
	}
}

// A certificate that is out of date may still be taken, by a server with another clock;
// of several authorities one is enough.
func TestTLSFilesOutOfDate(t *testing.T) {
	a := sinktest.NewAuthority(t)
	day := 24 * time.Hour
	for want, dates := range map[string][2]time.Duration{
		"the certificate ended on ":  {-2 * day, -day},
		"the certificate begins on ": {day, 2 * day},
		"":                           {-day, day},
	} {
		c := sinks.TLS{}
		c.CertFile, c.KeyFile = a.IssueFor(t, "bridge", time.Now().Add(dates[0]), time.Now().Add(dates[1]))
		err := c.CheckFiles()
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, sinks.ErrOutdated) || !strings.HasPrefix(err.Error(), "tls.cert_file: "+c.CertFile+": is out of date: "+want)) {
			t.Errorf("%v, want %q", err, want)
		}
		if _, err := c.Config(); err != nil {
			t.Errorf("a connection does not even try: %v", err)
		}
		trusted := sinks.TLS{CAFile: c.CertFile}
		if err := trusted.CheckFiles(); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), "tls.ca_file: ") {
			t.Errorf("as an authority: %v, want %q", err, want)
		}
		old, err := os.ReadFile(c.CertFile)
		if err != nil {
			t.Fatal(err)
		}
		current, err := os.ReadFile(a.File)
		if err != nil {
			t.Fatal(err)
		}
		if err := (sinks.TLS{CAFile: file(t, string(old)+string(current))}).CheckFiles(); err != nil {
			t.Errorf("beside one in force: %v", err)
		}
	}
}
