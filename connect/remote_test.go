package connect

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"
)

const testSession = "6f2c8a4e-7a0b-4c3d-9e1f-0123456789ab"

func TestParseRemote(t *testing.T) {
	for _, c := range []struct {
		in   string
		want func(*Remote)
	}{
		{"sc://spark", func(*Remote) {}},
		{"sc://spark/", func(*Remote) {}},
		{"sc://SPARK:/;", func(*Remote) {}},
		{"sc://spark:443/;use_ssl=true", func(r *Remote) { r.Port, r.UseSSL = 443, true }},
		{"sc://spark/;use_ssl=False", func(*Remote) {}},
		{"sc://[::1]:7/", func(r *Remote) { r.Host, r.Port = "::1", 7 }},
		{"sc://[FE80::1%25eth0]", func(r *Remote) { r.Host = "fe80::1%eth0" }},
		{"sc://10.0.0.1:15003", func(r *Remote) { r.Host, r.Port = "10.0.0.1", 15003 }},
		{"sc://spark/;user_id=J%C3%BCrgen%20%3B%3D;session_id=" + testSession, func(r *Remote) { r.UserID, r.SessionID = "Jürgen ;=", testSession }},
		{"sc://spark/;user_id=a+b", func(r *Remote) { r.UserID = "a+b" }},
		{"sc://spark/;user_id=a;user_id=b;", func(r *Remote) { r.UserID = "b" }},
		{"sc://spark/;user_agent=etl", func(r *Remote) { r.UserAgent = "etl" }},
		{"sc://spark/;X-Cluster-Id=7", func(r *Remote) { r.Headers = map[string]string{"x-cluster-id": "7"} }},
		{"sc://spark/;grpc_max_message_size=1000", func(r *Remote) { r.MaxMessageBytes = 1000 }},
		{"sc://spark/;grpc_keepalive_time_ms=60000;grpc_keepalive_timeout_ms=5000;grpc_keepalive_without_calls=true;grpc_keepalive_enabled=false",
			func(r *Remote) { r.Keepalive = Keepalive{true, time.Minute, 5 * time.Second, true} }},
		// A token turns TLS on, except to loopback.
		{"sc://spark/;token=abc", func(r *Remote) { r.Token, r.UseSSL = "abc", true }},
		{"sc://spark/;authorization=Basic%20x", func(r *Remote) {
			r.Headers, r.UseSSL = map[string]string{"authorization": "Basic x"}, true
		}},
		{"sc://localhost/;token=abc", func(r *Remote) { r.Host, r.Token = "localhost", "abc" }},
		{"sc://127.9.9.9/;token=abc;use_ssl=false", func(r *Remote) { r.Host, r.Token = "127.9.9.9", "abc" }},
		{"sc://[::ffff:127.0.0.1]/;token=abc", func(r *Remote) { r.Host, r.Token = "::ffff:127.0.0.1", "abc" }},
		{"sc://localhost/;token=abc;use_ssl=true", func(r *Remote) { r.Host, r.Token, r.UseSSL = "localhost", "abc", true }},
	} {
		want := Remote{Host: "spark", Port: 15002, MaxMessageBytes: 128 << 20, Keepalive: Keepalive{Time: 310 * time.Second, Timeout: 20 * time.Second}}
		c.want(&want)
		got, err := ParseRemote(c.in)
		got.sslWritten = false
		if err != nil || !sameRemote(got, want) {
			t.Errorf("ParseRemote(%q) = %#v, %v, want %#v", c.in, got, err, want)
		}
	}
}

func sameRemote(a, b Remote) bool {
	headers := maps.Equal(a.Headers, b.Headers)
	a.Headers, b.Headers = nil, nil
	return headers && fmt.Sprint(fields(a)) == fmt.Sprint(fields(b))
}

// fields are what String hides.
func fields(r Remote) []any {
	return []any{r.Host, r.Port, r.UseSSL, r.Token, r.UserID, r.SessionID, r.UserAgent, r.MaxMessageBytes, r.Keepalive}
}

func TestParseRemoteNamesWhatIsWrong(t *testing.T) {
	for in, part := range map[string]string{
		"":                                      "scheme",
		"spark:15002":                           "scheme",
		"http://spark":                          "scheme",
		"sc://":                                 "host",
		"sc:///;user_id=a":                      "host",
		"sc://:15002":                           "host",
		"sc://sp ark":                           "host",
		"sc://::1:15002":                        "host",
		"sc://[::1":                             "host",
		"sc://[10.0.0.1]:1":                     "host",
		"sc://user:pw@spark":                    "host",
		"sc://spark;user_id=a":                  "host",
		"sc://[::1]15002":                       "port",
		"sc://spark:0":                          "port",
		"sc://spark:65536":                      "port",
		"sc://spark:http":                       "port",
		"sc://spark:+1":                         "port",
		"sc://spark/folder":                     "path",
		"sc://spark/folder;user_id=a":           "path",
		"sc://spark/;user_id=a?b":               "parameters",
		"sc://spark/;user_id":                   "user_id",
		"sc://spark/;user_id=":                  "user_id",
		"sc://spark/;user_id=a=b":               "user_id",
		"sc://spark/;user_id=%zz":               "user_id",
		"sc://spark/;user_id=%ff":               "user_id",
		"sc://spark/;;user_id=a":                "parameter 1",
		"sc://spark/;x-a=1;=b":                  "parameter 2",
		"sc://spark/;use_ssl=yes":               "use_ssl",
		"sc://spark/;USE_SSL=true":              "USE_SSL",
		"sc://spark/;session_id=7":              "session_id",
		"sc://spark/;token=a%0Ab":               "token",
		"sc://spark/;x-a=%C3%BC":                "x-a",
		"sc://spark/;grpc-timeout=1":            "parameter name",
		"sc://spark/;x a=1":                     "parameter name",
		"sc://spark/;token=a;use_ssl=false":     "use_ssl",
		"sc://spark/;grpc_max_message_size=0":   "grpc_max_message_size",
		"sc://spark/;grpc_max_message_size=1e9": "grpc_max_message_size",
		"sc://spark/;grpc_keepalive_time_ms=-1": "grpc_keepalive_time_ms",
		"sc://spark/;grpc_keepalive_time=1":     "grpc_keepalive_time",
		"sc://spark/;user_agent=" + strings.Repeat("a", 2049): "user_agent",
	} {
		_, err := ParseRemote(in)
		var e *RemoteError
		if !errors.As(err, &e) || e.Part != part || e.Next == "" || e.Problem == "" {
			t.Errorf("ParseRemote(%q): %v, want an error about %q", in, err, part)
		}
	}
}

func TestCredentialsAreNeverShown(t *testing.T) {
	const secret = "s3cr3t"
	for _, in := range []string{
		"spark/;token=" + secret, "sc://spark;token=" + secret, "sc://spark/x;token=" + secret, "sc://u:" + secret + "@spark",
		"sc://spark/;token=" + secret + "=", "sc://spark/;token=a;" + secret, "sc://spark/;token=a;" + secret + "=", "sc://spark/;token=" + secret + "%",
		"sc://spark/;token=" + secret + "%0A", "sc://spark/;use_ssl=false;token=" + secret, "sc://spark/;token" + secret, "sc://spark/;x-a=" + secret + "%C3%BC",
	} {
		if _, err := ParseRemote(in); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("ParseRemote(%q): %v", in, err)
		}
	}
	r, err := ParseRemote("sc://spark/;x-key=" + secret + ";token=" + secret)
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(map[string]any{"remote": r})
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("", "remote", r)
	for _, shown := range []string{r.String(), fmt.Sprintf("%v %+v %#v %s", r, r, r, r), string(asJSON), logged.String()} {
		if strings.Contains(shown, secret) || !strings.Contains(shown, "token=***") {
			t.Errorf("shown as %s", shown)
		}
	}
}

func TestTokenIsHeldToTheSameRuleLater(t *testing.T) {
	plain, err := ParseRemote("sc://spark/;use_ssl=false")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := plain.WithToken("abc"); err == nil {
		t.Error("a token was taken in clear text")
	}
	if _, err := NewClient(ClientOptions{}).Session(Remote{Host: "spark", Port: 1, Token: "abc", sslWritten: true}); err == nil {
		t.Error("a session was opened with a token in clear text")
	}
	silent, err := ParseRemote("sc://spark")
	if err != nil {
		t.Fatal(err)
	}
	if r, err := silent.WithToken("abc"); err != nil || !r.UseSSL || silent.UseSSL {
		t.Errorf("WithToken = %v, %v", r, err)
	}
}

func TestRemoteFromEnvironment(t *testing.T) {
	env := map[string]string{"SPARK_REMOTE": "sc://spark", "SPARK_CONNECT_AUTHENTICATE_TOKEN": "abc", "SPARK_USER": "etl"}
	getenv := func(k string) string { return env[k] }
	r, err := RemoteFromEnvironment(getenv)
	if err != nil || r.Token != "abc" || !r.UseSSL || r.UserID != "etl" {
		t.Errorf("RemoteFromEnvironment = %v, %v", r, err)
	}
	env["SPARK_REMOTE"] = "sc://spark/;user_id=me;token=mine"
	if r, err := RemoteFromEnvironment(getenv); err != nil || r.Token != "mine" || r.UserID != "me" {
		t.Errorf("RemoteFromEnvironment = %v, %v, want what the string says", r, err)
	}
	delete(env, "SPARK_REMOTE")
	if _, err := RemoteFromEnvironment(getenv); err == nil || !strings.Contains(err.Error(), "SPARK_REMOTE") {
		t.Errorf("without SPARK_REMOTE: %v", err)
	}
}

func FuzzParseRemote(f *testing.F) {
	for _, s := range []string{
		"sc://localhost", "sc://[::1]:15002/;token=a%20b;user_id=u", "sc://h/;use_ssl=true;x-a=b;session_id=" + testSession,
		"sc://h:1/;grpc_max_message_size=5;grpc_keepalive_time_ms=9;user_agent=x%3B", "sc://[fe80::1%25e]/;;", "sc://@/?#",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRemote(s)
		var e *RemoteError
		if err != nil {
			if !errors.As(err, &e) {
				t.Fatalf("%q: %v is no RemoteError", s, err)
			}
			return
		}
		if r.Token != "" && !r.UseSSL && !r.loopback() {
			t.Fatalf("%q sends a token in clear text", s)
		}
		again, err := ParseRemote(r.String())
		if err != nil {
			t.Fatalf("%q is shown as %q: %v", s, r.String(), err)
		}
		if again.String() != r.String() {
			t.Fatalf("%q is shown as %q and then as %q", s, r.String(), again.String())
		}
	})
}
