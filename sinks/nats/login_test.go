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

// realm is an operator with an account, and a user of that whose credentials are in a file.
type realm struct {
	operatorKey, operatorJWT string
	accounts                 map[string]string // JWT by public key, that of the system too
	system                   string            // its public key
	creds                    string            // file
}

func newRealm(t *testing.T) realm {
	t.Helper()
	operator, err := nkeys.CreateOperator()
	if err != nil {
		t.Fatal(err)
	}
	r := realm{accounts: map[string]string{}}
	r.operatorKey, _ = operator.PublicKey()
	system, _ := r.account(t, operator, false)
	r.system = system
	claims := jwt.NewOperatorClaims(r.operatorKey)
	claims.SystemAccount = system
	if r.operatorJWT, err = claims.Encode(operator); err != nil {
		t.Fatal(err)
	}
	_, account := r.account(t, operator, true)
	userKey, seed := newUser(t)
	userJWT, err := jwt.NewUserClaims(userKey).Encode(account)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jwt.FormatUserConfig(userJWT, seed)
	if err != nil {
		t.Fatal(err)
	}
	r.creds = write(t, "user.creds", text)
	return r
}

// account adds an account, which may have streams of any size.
func (r realm) account(t *testing.T, operator nkeys.KeyPair, streams bool) (string, nkeys.KeyPair) {
	t.Helper()
	pair, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	key, _ := pair.PublicKey()
	claims := jwt.NewAccountClaims(key)
	if streams {
		claims.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: jwt.NoLimit, MemoryStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
	}
	if r.accounts[key], err = claims.Encode(operator); err != nil {
		t.Fatal(err)
	}
	return key, pair
}

// configure makes a server know the realm.
func (r realm) configure(t *testing.T) func(*server.Options) {
	resolver := &server.MemAccResolver{}
	for key, text := range r.accounts {
		if err := resolver.Store(key, text); err != nil {
			t.Fatal(err)
		}
	}
	return func(o *server.Options) {
		o.JetStream = false
		o.TrustedKeys, o.AccountResolver = []string{r.operatorKey}, resolver
	}
}

func TestCredentialsFile(t *testing.T) {
	ours := newRealm(t)
	s := startServer(t, ours.configure(t))
	if err := delivers(t, Config{URL: s.url(), CredsFile: ours.creds}); err != nil {
		t.Error(err)
	}
	wantDenied(t, delivers(t, Config{URL: s.url(), CredsFile: newRealm(t).creds}), "renew creds_file")
	err := delivers(t, Config{URL: s.url(), CredsFile: "/nowhere"})
	if err == nil || !strings.Contains(err.Error(), "creds_file: /nowhere: there is no such file") {
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
	for next, config := range map[string]sinks.TLS{"set tls.ca_file": {}, "tls.server_name": other, "tls.ca_file: /nowhere: there is no such file": {CAFile: "/nowhere"}} {
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
