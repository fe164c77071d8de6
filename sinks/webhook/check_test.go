package webhook

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"sparkbridge/sinks"
	"sparkbridge/sinks/sinktest"
)

// checked checks an address, and compares the one finding.
func checked(t *testing.T, sink *Sink, about, state, says string) {
	t.Helper()
	found := sink.Check(t.Context(), []string{"etl"})
	if len(found) != 1 {
		t.Fatalf("%d findings", len(found))
	}
	got, text := "ok", found[0].Text
	if found[0].Unknown {
		got = "unknown"
	}
	if found[0].Problem != nil {
		got, text = "problem", found[0].Problem.Error()
	}
	t.Log(text)
	if found[0].About != about || got != state || !strings.Contains(text, says) || strings.Contains(text, "\n") || strings.Contains(text, "hush") {
		t.Errorf("%s %s: %s, want %s %s: …%s…", found[0].About, got, text, about, state, says)
	}
}

func sinkTo(t *testing.T, address string) *Sink {
	t.Helper()
	sink, err := New(Config{URL: address + "/hush?key=hush"}, "test", "1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	sink.proxy = func(*http.Request) (*url.URL, error) { return nil, nil }
	return sink
}

func quietServer(t *testing.T) *httptest.Server {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the check has sent a request")
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
	t.Cleanup(server.Close)
	return server
}

func TestCheckConnectsAndSendsNothing(t *testing.T) {
	plain := quietServer(t)
	plain.Start()
	checked(t, sinkTo(t, plain.URL), "server", "ok", "is reachable; nothing was sent")

	ours := sinktest.NewAuthority(t)
	secure := quietServer(t)
	secure.TLS = ours.Server(t, "hooks.test")
	secure.StartTLS()
	checked(t, sinkTo(t, secure.URL), "server", "problem", "set tls.ca_file")
	for _, c := range []struct {
		tls         sinks.TLS
		state, says string
	}{
		{sinks.TLS{CAFile: ours.File}, "ok", "is reachable; nothing was sent"},
		{sinks.TLS{CAFile: ours.File, ServerName: "hooks.test"}, "ok", "is reachable; nothing was sent"},
		{sinks.TLS{CAFile: ours.File, ServerName: "other.test"}, "problem", "other.test"},
		{sinks.TLS{CAFile: "/nowhere"}, "problem", "tls.ca_file: /nowhere: there is no such file"},
	} {
		sink := sinkTo(t, secure.URL)
		sink.tls = c.tls
		checked(t, sink, "server", c.state, c.says)
	}
	checked(t, sinkTo(t, strings.Replace(plain.URL, "http", "https", 1)), "server", "problem", "does not speak TLS")

	plain.Close()
	checked(t, sinkTo(t, plain.URL), "server", "problem", "refused; start the receiver")
}

func TestCheckGoesByTheProxy(t *testing.T) {
	proxy := quietServer(t)
	proxy.Start()
	address, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.UserPassword("me", "hush")
	sink := sinkTo(t, "https://nobody.invalid")
	sink.proxy = http.ProxyURL(address)
	checked(t, sink, "proxy", "unknown", "is reachable; whether https://nobody.invalid")
	proxy.Close()
	checked(t, sink, "proxy", "problem", "HTTPS_PROXY")
}

func TestCheckEndsInTime(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	found := sinkTo(t, "https://"+silent.Addr().String()).Check(ctx, nil)
	if len(found) != 1 || found[0].Problem == nil {
		t.Errorf("found %+v of a server that says nothing", found)
	}
}
