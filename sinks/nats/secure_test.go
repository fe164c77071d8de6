//go:build integration

package nats

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/integration/servers"
	"sparkbridge/sinks"
	"sparkbridge/sinks/sinktest"
)

// guarded is a nats-server in a process of its own that lets in only whom it knows, by
// TLS only, and the configuration of a sink that it lets in.
type guarded struct {
	*servers.NATS
	sink Config // without the address
}

// ways are all ways of saying who one is.
var ways = map[string]func(*testing.T) (config string, sink Config){
	"token": func(*testing.T) (string, Config) {
		return `authorization: {token: "s3cret", timeout: 30}`, Config{Token: "s3cret"}
	},
	"user": func(*testing.T) (string, Config) {
		return `authorization: {user: bridge, password: "s3cret", timeout: 30}`, Config{User: "bridge", Password: "s3cret"}
	},
	"nkey": func(t *testing.T) (string, Config) {
		public, seed := newUser(t)
		return fmt.Sprintf("authorization: {users: [{nkey: %s}], timeout: 30}", public), Config{NKeyFile: write(t, "user.nk", seed)}
	},
	"creds": func(t *testing.T) (string, Config) {
		r := newRealm(t)
		var known strings.Builder
		for key, text := range r.accounts {
			fmt.Fprintf(&known, "%s: %s\n", key, text)
		}
		return fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: {\n%s}", r.operatorJWT, r.system, known.String()), Config{CredsFile: r.creds}
	},
}

// startGuarded starts a server with one way to log in. With mutual it also wants a
// certificate of its clients.
func startGuarded(t *testing.T, way string, mutual bool) guarded {
	t.Helper()
	authority := sinktest.NewAuthority(t)
	certFile, keyFile := authority.Issue(t, "nats.test")
	config, sink := ways[way](t)
	sink.TLS = sinks.TLS{CAFile: authority.File}
	if mutual {
		sink.TLS = authority.Client(t, "bridge")
	}
	process, err := servers.StartNATS(t.Context(), servers.NATSOptions{
		Dir:    t.TempDir(),
		Config: fmt.Sprintf("%s\ntls: {cert_file: %q, key_file: %q, ca_file: %q, verify: %v, timeout: 30}", config, certFile, keyFile, authority.File, mutual),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	return guarded{process, sink}
}

// jetstream connects a client of the test's own, which is not the sink's.
func (g guarded) jetstream(t testing.TB) jetstream.JetStream {
	t.Helper()
	options, err := g.sink.access()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(g.URL(), append(options, nats.Timeout(time.Minute), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// newStream makes the stream that takes all, or makes it empty.
func newStream(t testing.TB, js jetstream.JetStream) {
	t.Helper()
	stream, err := js.CreateOrUpdateStream(t.Context(), jetstream.StreamConfig{Name: "spark", Subjects: []string{"spark.>"}})
	if err == nil {
		err = stream.Purge(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A server that is a process can be killed and frozen for real.
func TestConformanceOfGuardedServers(t *testing.T) {
	for way, mutual := range map[string]bool{"token": false, "user": false, "nkey": true, "creds": true} {
		t.Run(way, func(t *testing.T) {
			server := startGuarded(t, way, mutual)
			client := server.jetstream(t)
			sinktest.Run(t, func(t *testing.T) sinktest.Harness {
				newStream(t, client)
				proxy := sinktest.NewProxy(t, strings.TrimPrefix(server.URL(), "nats://"))
				cfg := server.sink
				cfg.URL, cfg.JetStream = "nats://"+proxy.Addr(), true
				return sinktest.Harness{
					New: func(t testing.TB) sinks.Sink { return newSink(t, cfg) },
					Received: func(ctx context.Context) ([]sinktest.Message, error) {
						all, err := readStream(ctx, client)
						return messages(t, all), err
					},
					Stop:   func(testing.TB) { server.Kill() },
					Start:  func(t testing.TB) { restart(t, server) },
					Freeze: func(t testing.TB) { server.Pause(); proxy.Freeze(t) }, // a process does not stop at once
					Thaw:   func(t testing.TB) { server.Resume(); proxy.Thaw(t) },
					Slow:   proxy.Slow,
					Limit:  serverLimit,
				}
			})
		})
	}
}

func restart(t testing.TB, server guarded) {
	t.Helper()
	if err := server.Restart(context.Background()); err != nil {
		t.Error(err)
	}
}
