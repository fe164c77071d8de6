package nats

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// newCreds writes credentials of a user that end at a time, and returns their file.
func newCreds(t *testing.T, ends time.Time) string {
	t.Helper()
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	public, seed := newUser(t)
	claims := jwt.NewUserClaims(public)
	claims.Expires = ends.Unix()
	text, err := claims.Encode(account)
	if err != nil {
		t.Fatal(err)
	}
	creds, err := jwt.FormatUserConfig(text, seed)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, "user.creds", creds)
}

// What is wrong with a file is told with its key, path and the next step, and nothing of
// what is in it.
func TestCheckFiles(t *testing.T) {
	soon := time.Now().Add(time.Hour)
	_, seed := newUser(t)
	right := write(t, "user.nk", seed)
	for _, c := range []Config{{NKeyFile: right}, {CredsFile: newCreds(t, soon)}, {CredsFile: newRealm(t).creds}, {}} {
		if err := c.CheckFiles(); err != nil {
			t.Errorf("right files: %v", err)
		}
	}
	junk := write(t, "junk", []byte("hunter2"))
	mine, err := os.ReadFile(newCreds(t, soon))
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(mine), "-----BEGIN USER NKEY SEED")
	foreign := write(t, "foreign.creds", fmt.Appendf(nil, "%s-----BEGIN USER NKEY SEED-----\n%s\n------END USER NKEY SEED------\n", head, seed))
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	accountSeed, err := account.Seed()
	if err != nil {
		t.Fatal(err)
	}
	other, bad := write(t, "account.nk", accountSeed), write(t, "bad", []byte("hun.ter2.x"))
	const nkeyForm, credsForm = "; it must be a file with the seed of a user, which begins with SU", "; it must be a file of a user as nsc generate creds writes it"
	for want, c := range map[string]Config{
		"nkey_file: /nowhere: there is no such file; put it there, or correct the path":      {NKeyFile: "/nowhere"},
		"nkey_file: " + junk + ": has no seed of a user in it" + nkeyForm:                    {NKeyFile: junk},
		"nkey_file: " + filepath.Dir(junk) + ": is a folder":                                 {NKeyFile: filepath.Dir(junk)},
		"nkey_file: " + other + ": has no seed of a user in it":                              {NKeyFile: other},
		"creds_file: /nowhere: there is no such file":                                        {CredsFile: "/nowhere"},
		"creds_file: " + junk + ": has no JWT in it" + credsForm:                             {CredsFile: junk},
		"creds_file: " + right + ": has no JWT in it" + credsForm:                            {CredsFile: right},
		"creds_file: " + foreign + ": has the seed of another user than its JWT" + credsForm: {CredsFile: foreign},
		"creds_file: " + bad + ": has a JWT that cannot be read":                             {CredsFile: bad},
	} {
		err := c.CheckFiles()
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, want)
		}
		if !errors.As(err, new(*sinks.FileError)) || errors.Is(err, sinks.ErrOutdated) {
			t.Errorf("%#v is no error of a file", err)
		}
	}
	old := newCreds(t, time.Now().Add(-time.Hour))
	if err := (Config{CredsFile: old}).CheckFiles(); !errors.Is(err, sinks.ErrOutdated) || !strings.HasPrefix(err.Error(), "creds_file: "+old+": is out of date: the JWT ended on ") {
		t.Errorf("credentials that have ended: %v", err)
	}
	all := Config{NKeyFile: "/nowhere", CredsFile: "/nowhere", TLS: sinks.TLS{CAFile: "/nowhere", CertFile: "/nowhere", KeyFile: "/nowhere"}}.CheckFiles()
	if all == nil || strings.Count(all.Error(), "\n") != 4 {
		t.Errorf("of five files that are missing are told: %v", all)
	}
}

// A file that goes while the bridge runs is a failure of the next connection, and no
// longer than it is away. No server is to be started for that.
func TestFileThatGoesAndComes(t *testing.T) {
	ours := newRealm(t)
	s := startServer(t, ours.configure(t))
	away := ours.creds + ".away"
	if err := os.Rename(ours.creds, away); err != nil {
		t.Fatal(err)
	}
	cfg := Config{URL: s.url(), CredsFile: ours.creds}
	wantFindings(t, checked(t, cfg), [3]string{"server", "problem", "there is no such file; put it there, or correct the path"})
	if problem := checked(t, cfg)[0].Problem; strings.Contains(problem.Error(), "start the server") {
		t.Errorf("another next step than the file: %v", problem)
	}
	sink := newSink(t, cfg)
	if _, err := sink.Deliver(t.Context(), []listener.Event{progress("q", 0)}); err == nil || sinks.IsPermanent(err) || !strings.Contains(err.Error(), "creds_file: "+ours.creds) {
		t.Errorf("without the file: %v", err)
	}
	if err := os.Rename(away, ours.creds); err != nil {
		t.Fatal(err)
	}
	if acked, err := sink.Deliver(t.Context(), []listener.Event{progress("q", 0)}); acked != 1 {
		t.Errorf("with the file back: %v", err)
	}
}

// No path is read otherwise than it is written.
func TestCredsFileWithADollar(t *testing.T) {
	ours := newRealm(t)
	s := startServer(t, ours.configure(t))
	path := filepath.Join(t.TempDir(), "$HOME.creds")
	if err := os.Rename(ours.creds, path); err != nil {
		t.Fatal(err)
	}
	if err := delivers(t, Config{URL: s.url(), CredsFile: path}); err != nil {
		t.Error(err)
	}
}
