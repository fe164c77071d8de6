package webhook_test

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"sparkbridge/sinks"
	"sparkbridge/sinks/sinktest"
	"sparkbridge/sinks/webhook"
)

func TestCredentials(t *testing.T) {
	for want, cfg := range map[string]webhook.Config{
		"Bearer t0k":         {Bearer: "t0k"},
		"Basic dTpwOnA=":     {Basic: webhook.Basic{User: "u", Password: "p:p"}},
		"Token abc":          {Headers: map[string]sinks.Secret{"authorization": "Token abc", "x-api-key": "k"}},
		"Basic dXJsOnVybA==": {},
	} {
		var got http.Header
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
		cfg.URL = server.URL
		if strings.Contains(want, "dXJs") {
			cfg.URL = strings.Replace(server.URL, "//", "//url:url@", 1)
		}
		if _, err := newSink(t, cfg).Deliver(t.Context(), events(1, "q")); err != nil {
			t.Error(err)
		}
		if got.Get("Authorization") != want || got.Get("X-Api-Key") != cfg.Headers["x-api-key"].Reveal() {
			t.Errorf("sent %v, want %s", got, want)
		}
		server.Close()
	}
}

func TestValidateSecrets(t *testing.T) {
	const hidden = "aHVudGVyMg==" // hunter2 in base64, too
	with := func(change func(*webhook.Config)) webhook.Config {
		cfg := webhook.Config{URL: "https://h.test/x"}
		change(&cfg)
		return cfg
	}
	for want, change := range map[string]func(*webhook.Config){
		"secret: has 7 bytes; write whsec_":          func(c *webhook.Config) { c.Secret = "whsec_" + hidden },
		"secrets[1]: is not base64; write whsec_":    func(c *webhook.Config) { c.Secrets = []sinks.Secret{secret("a", 24), "hunter2!"} },
		"secret: is a key for asymmetric signatures": func(c *webhook.Config) { c.Secret = "whsk_hunter2" },
		"secrets: secret is set too":                 func(c *webhook.Config) { c.Secret, c.Secrets = secret("a", 24), []sinks.Secret{secret("b", 24)} },
		"bearer: is set beside a user in url":        func(c *webhook.Config) { c.URL, c.Bearer = "https://u:hunter2@h.test", "hunter2" },
		"basic: is set beside a user in url and bearer; keep one": func(c *webhook.Config) {
			c.URL, c.Bearer, c.Basic = "https://u:hunter2@h.test", "hunter2", webhook.Basic{User: "u"}
		},
		"basic: is set beside bearer; keep one": func(c *webhook.Config) { c.Bearer, c.Basic = "hunter2", webhook.Basic{User: "u"} },
		"headers.authorization: is set beside bearer": func(c *webhook.Config) {
			c.Bearer, c.Headers = "hunter2", map[string]sinks.Secret{"authorization": "hunter2"}
		},
		"basic.user: is missing":                              func(c *webhook.Config) { c.Basic.Password = "hunter2" },
		"basic.user: holds a colon":                           func(c *webhook.Config) { c.Basic.User = "a:b" },
		"bearer: holds a line break":                          func(c *webhook.Config) { c.Bearer = "hunter2\n" },
		"headers.x-key: holds a line break":                   func(c *webhook.Config) { c.Headers = map[string]sinks.Secret{"x-key": "hunter2\r\n"} },
		"headers.webhook-id: is set by the bridge itself":     func(c *webhook.Config) { c.Headers = map[string]sinks.Secret{"webhook-id": "hunter2"} },
		`headers: "a b" is not the name of a header`:          func(c *webhook.Config) { c.Headers = map[string]sinks.Secret{"a b": "hunter2"} },
		"tls.key_file: is missing":                            func(c *webhook.Config) { c.TLS.CertFile = "c" },
		`url: "http://h.test" is without TLS, and tls is set`: func(c *webhook.Config) { c.URL, c.TLS.CAFile = "http://h.test", "a" },
		"secrets: all of them are empty":                      func(c *webhook.Config) { c.Secret, c.Secrets = "", []sinks.Secret{""} },
		"batch.max_events: 513 is none of 1 to 512":           func(c *webhook.Config) { c.Batch.MaxEvents = 513 },
		"batch.max_events: is missing":                        func(c *webhook.Config) { c.Batch.MaxWait = time.Second },
		"batch.max_wait: 1h0m0s is not between":               func(c *webhook.Config) { c.Batch = webhook.Batch{MaxEvents: 1, MaxWait: time.Hour} },
	} {
		err := with(change).Validate()
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), hidden) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// However a configuration is printed, its secrets are not.
func TestSecretsStayHidden(t *testing.T) {
	cfg := webhook.Config{
		URL: "https://h.test", Secret: "hunter2", Secrets: []sinks.Secret{"hunter2"}, Bearer: "hunter2",
		Basic: webhook.Basic{User: "u", Password: "hunter2"}, Headers: map[string]sinks.Secret{"x": "hunter2"},
	}
	type plain webhook.Config // without its String
	var text bytes.Buffer
	slog.New(slog.NewJSONHandler(&text, nil)).Info("configured", "cfg", cfg, "plain", plain(cfg))
	inJSON, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&text, "%s %v %+v %#v %s %+v", inJSON, cfg, plain(cfg), plain(cfg), cfg.Headers, &cfg)
	if strings.Contains(text.String(), "hunter2") || !strings.Contains(text.String(), "***") {
		t.Error(text.String())
	}
}

func TestMutualTLS(t *testing.T) {
	ours, theirs := sinktest.NewAuthority(t), sinktest.NewAuthority(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 || r.TLS.PeerCertificates[0].Subject.CommonName != "bridge" {
			t.Errorf("%s from %s", r.Proto, r.TLS.PeerCertificates[0].Subject)
		}
	}))
	server.EnableHTTP2 = true
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.TLS = ours.Server(t, "hooks.test")
	server.TLS.ClientAuth = tls.RequireAndVerifyClientCert
	server.StartTLS()
	defer server.Close()
	client := ours.Client(t, "bridge")
	if acked, err := newSink(t, webhook.Config{URL: server.URL, TLS: client}).Deliver(t.Context(), events(2, "a", "b")); acked != 4 {
		t.Error(err)
	}
	for want, settings := range map[string]sinks.TLS{
		"set tls.cert_file and tls.key_file": {CAFile: ours.File},
		"set tls.ca_file":                    {CAFile: theirs.File, CertFile: client.CertFile, KeyFile: client.KeyFile},
		"tls.server_name":                    {CAFile: ours.File, ServerName: "other.test"},
	} {
		// A server that hangs up may cut the request before its reason is read; the
		// worker comes again, and so does this.
		sink := newSink(t, webhook.Config{URL: server.URL, TLS: settings})
		_, err := sink.Deliver(t.Context(), events(1, "q"))
		for range 20 {
			if err == nil || strings.Contains(err.Error(), want) {
				break
			}
			_, err = sink.Deliver(t.Context(), events(1, "q"))
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want: %s", err, want)
		}
	}
}

// Files are looked at beforehand, and one that goes while the bridge runs is a failure
// for no longer than it is away.
func TestFileThatGoesAndComes(t *testing.T) {
	ours := sinktest.NewAuthority(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = ours.Server(t, "hooks.test")
	server.StartTLS()
	defer server.Close()
	cfg := webhook.Config{URL: server.URL, TLS: sinks.TLS{CAFile: ours.File + ".away"}}
	if err := cfg.CheckFiles(); err == nil || !strings.HasPrefix(err.Error(), "tls.ca_file: "+ours.File+".away: there is no such file") {
		t.Errorf("checked beforehand: %v", err)
	}
	sink := newSink(t, cfg)
	if _, err := sink.Deliver(t.Context(), events(1, "q")); err == nil || sinks.IsPermanent(err) {
		t.Errorf("without the file: %v", err)
	}
	if err := os.Rename(ours.File, ours.File+".away"); err != nil {
		t.Fatal(err)
	}
	if acked, err := sink.Deliver(t.Context(), events(1, "q")); acked != 1 {
		t.Errorf("with the file back: %v", err)
	}
}

// An authority that was put right in its file is trusted at the next attempt.
func TestAuthoritiesAreReadAgain(t *testing.T) {
	ours, theirs := sinktest.NewAuthority(t), sinktest.NewAuthority(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	server.TLS = ours.Server(t, "hooks.test")
	server.StartTLS()
	defer server.Close()
	sink := newSink(t, webhook.Config{URL: server.URL, TLS: sinks.TLS{CAFile: theirs.File}})
	if _, err := sink.Deliver(t.Context(), events(1, "q")); err == nil {
		t.Fatal("trusted without a reason")
	}
	if err := os.Rename(ours.File, theirs.File); err != nil {
		t.Fatal(err)
	}
	if acked, err := sink.Deliver(t.Context(), events(1, "q")); acked != 1 {
		t.Error(err)
	}
}
