package nats

import (
	"crypto/tls"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"sparkbridge/listener"
	"sparkbridge/sinks"
	"sparkbridge/sinks/sinktest"
)

// delivers publishes one event to plain NATS.
func delivers(t *testing.T, cfg Config) error {
	t.Helper()
	acked, err := newSink(t, cfg).Deliver(t.Context(), []listener.Event{progress("q", 0)})
	if (err == nil) != (acked == 1) {
		t.Errorf("%d acknowledged with %v", acked, err)
	}
	return err
}

// wantDenied wants one error that says what to do and shows no secret.
func wantDenied(t *testing.T, err error, next string) {
	t.Helper()
	if !errors.Is(err, sinks.ErrDenied) || !strings.Contains(err.Error(), next) {
		t.Errorf("error %v, want one with: %s", err, next)
	}
	if err != nil && (strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n")) {
		t.Errorf("the error shows a secret, or is no line: %v", err)
	}
}

func TestToken(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.Authorization = "s3cret" })
	if err := delivers(t, Config{URL: s.url(), Token: "s3cret"}); err != nil {
		t.Error(err)
	}
	wantDenied(t, delivers(t, Config{URL: s.url(), Token: "hunter2"}), "; correct token")
	wantDenied(t, delivers(t, Config{URL: strings.Replace(s.url(), "//", "//hunter2@", 1)}), "in url")
	wantDenied(t, delivers(t, Config{URL: s.url()}), "set token, user and password, nkey_file or creds_file")
}

func TestUserAndPassword(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.Username, o.Password = "bridge", "s3cret" })
	if err := delivers(t, Config{URL: s.url(), User: "bridge", Password: "s3cret"}); err != nil {
		t.Error(err)
	}
	wantDenied(t, delivers(t, Config{URL: s.url(), User: "bridge", Password: "hunter2"}), "; correct user and password")
}

func write(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// newUser returns the public key and the seed of a new user.
func newUser(t *testing.T) (public string, seed []byte) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err == nil {
		seed, err = pair.Seed()
	}
	if err != nil {
		t.Fatal(err)
	}
	return public, seed
}

func TestNKey(t *testing.T) {
	public, seed := newUser(t)
	s := startServer(t, func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} })
	file := write(t, "user.nk", append(seed, '\n'))
	if err := delivers(t, Config{URL: s.url(), NKeyFile: file}); err != nil {
		t.Error(err)
	}
	_, foreign := newUser(t)
	if err := os.WriteFile(file, foreign, 0o600); err != nil {
		t.Fatal(err)
	}
	wantDenied(t, delivers(t, Config{URL: s.url(), NKeyFile: file}), "let the server know the public key of nkey_file")
	err := delivers(t, Config{URL: s.url(), NKeyFile: write(t, "bad.nk", []byte("hunter2"))})
	if err == nil || !strings.Contains(err.Error(), "nkey_file: ") || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

// creds makes an operator's server, and writes a file with the credentials of a user of
// an account that it knows.
func creds(t *testing.T) (configure func(*server.Options), file string) {
	t.Helper()
	operator, err := nkeys.CreateOperator()
	if err != nil {
		t.Fatal(err)
	}
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	operatorKey, _ := operator.PublicKey()
	accountKey, _ := account.PublicKey()
	userKey, seed := newUser(t)
	accountJWT, err := jwt.NewAccountClaims(accountKey).Encode(operator)
	if err != nil {
		t.Fatal(err)
	}
	userJWT, err := jwt.NewUserClaims(userKey).Encode(account)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.FormatUserConfig(userJWT, seed)
	if err != nil {
		t.Fatal(err)
	}
	resolver := &server.MemAccResolver{}
	if err := resolver.Store(accountKey, accountJWT); err != nil {
		t.Fatal(err)
	}
	return func(o *server.Options) {
		o.JetStream = false
		o.TrustedKeys, o.AccountResolver = []string{operatorKey}, resolver
	}, write(t, "user.creds", text)
}

func TestCredentialsFile(t *testing.T) {
	configure, file := creds(t)
	s := startServer(t, configure)
	if err := delivers(t, Config{URL: s.url(), CredsFile: file}); err != nil {
		t.Error(err)
	}
	_, foreign := creds(t)
	wantDenied(t, delivers(t, Config{URL: s.url(), CredsFile: foreign}), "renew creds_file")
	err := delivers(t, Config{URL: s.url(), CredsFile: "/nowhere"})
	if err == nil || !strings.Contains(err.Error(), "creds_file: stat /nowhere") {
		t.Error(err)
	}
}

// A secret that was put right in its file is taken at the next attempt.
func TestFilesAreReadForEachConnection(t *testing.T) {
	public, seed := newUser(t)
	_, foreign := newUser(t)
	s := startServer(t, func(o *server.Options) { o.Nkeys = []*server.NkeyUser{{Nkey: public}} })
	file := write(t, "user.nk", foreign)
	sink := newSink(t, Config{URL: s.url(), NKeyFile: file})
	_, err := sink.Deliver(t.Context(), []listener.Event{progress("q", 0)})
	wantDenied(t, err, "nkey_file")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatal(err)
	}
	if acked, err := sink.Deliver(t.Context(), []listener.Event{progress("q", 0)}); acked != 1 {
		t.Error(err)
	}
}

func TestTLS(t *testing.T) {
	ours := sinktest.NewAuthority(t)
	s := startServer(t, func(o *server.Options) { o.TLS, o.TLSConfig = true, ours.Server(t, "nats.test") })
	trusting := sinks.TLS{CAFile: ours.File}
	named := trusting
	named.ServerName = "nats.test"
	if err := errors.Join(delivers(t, Config{URL: s.url(), TLS: trusting}), delivers(t, Config{URL: s.url(), TLS: named})); err != nil {
		t.Error(err)
	}
	other := trusting
	other.ServerName = "other.test"
	for next, config := range map[string]sinks.TLS{"set tls.ca_file": {}, "tls.server_name": other, "tls.ca_file: open /nowhere": {CAFile: "/nowhere"}} {
		if err := delivers(t, Config{URL: s.url(), TLS: config}); err == nil || !strings.Contains(err.Error(), next) {
			t.Errorf("error %v, want one with: %s", err, next)
		}
	}
	plain := startServer(t, nil)
	if err := delivers(t, Config{URL: plain.url(), TLS: trusting}); !errors.Is(err, nats.ErrSecureConnWanted) || !strings.Contains(err.Error(), "the server offers no TLS") {
		t.Error(err)
	}
}

func TestMutualTLS(t *testing.T) {
	ours, theirs := sinktest.NewAuthority(t), sinktest.NewAuthority(t)
	s := startServer(t, func(o *server.Options) {
		config := ours.Server(t, "nats.test")
		config.ClientAuth = tls.RequireAndVerifyClientCert
		o.TLS, o.TLSVerify, o.TLSConfig = true, true, config
	})
	if err := delivers(t, Config{URL: s.url(), TLS: ours.Client(t, "bridge")}); err != nil {
		t.Error(err)
	}
	foreign := theirs.Client(t, "bridge")
	foreign.CAFile = ours.File
	for _, config := range []sinks.TLS{{CAFile: ours.File}, foreign} {
		err := delivers(t, Config{URL: s.url(), TLS: config})
		if err == nil || !strings.Contains(err.Error(), "set tls.cert_file and tls.key_file") {
			t.Errorf("error %v", err)
		}
	}
}

// Servers of one list are tried until one is there.
func TestSeveralServers(t *testing.T) {
	down, up := startServer(t, nil), startServer(t, nil)
	down.stop(t)
	if err := delivers(t, Config{URL: down.url() + ", " + up.url()}); err != nil {
		t.Error(err)
	}
}
