package bridge

import (
	"context"
	"crypto/tls"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"sparkbridge/configs"
	"sparkbridge/connect/connecttest"
	"sparkbridge/sinks"
	"sparkbridge/sinks/sinktest"
)

// behindTLS puts a proxy before the server of a world, which wants a token too.
func behindTLS(t *testing.T, config *tls.Config) *world {
	t.Helper()
	w := newWorld(t, connecttest.Options{Token: "right"})
	listener := bufconn.Listen(1 << 20)
	connecttest.StartTLSProxy(t, listener, config, w.spark.Dialer)
	w.dial = func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	w.source.Token = "right"
	w.job(query("r1"))
	return w
}

// strict is a proxy's configuration that wants to see a certificate.
func strict(server *tls.Config) *tls.Config {
	server.ClientAuth = tls.RequireAndVerifyClientCert
	return server
}

// named is a server that is known by its name only.
func namedServer(t *testing.T, ours *sinktest.Authority) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(ours.IssueNamed(t, "spark.test"))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
}

// A source reaches Spark by TLS as its tls says, with the token; a connection that cannot be
// secured is waited for as any other, and the log says what to do.
func TestTLSToSpark(t *testing.T) {
	type side struct {
		server *tls.Config
		client sinks.TLS
	}
	for name, c := range map[string]struct {
		sides  func(t *testing.T, ours, theirs *sinktest.Authority) side
		advice string // empty: it works
	}{
		"own authority": {func(t *testing.T, ours, _ *sinktest.Authority) side {
			return side{ours.Server(t, "spark.test"), sinks.TLS{CAFile: ours.File}}
		}, ""},
		"own certificate": {func(t *testing.T, ours, _ *sinktest.Authority) side {
			return side{strict(ours.Server(t, "spark.test")), ours.Client(t, "bridge")}
		}, ""},
		"name of the server": {func(t *testing.T, ours, _ *sinktest.Authority) side {
			return side{namedServer(t, ours), sinks.TLS{CAFile: ours.File, ServerName: "spark.test"}}
		}, ""},
		"other authority": {func(t *testing.T, ours, theirs *sinktest.Authority) side {
			return side{ours.Server(t, "spark.test"), sinks.TLS{CAFile: theirs.File}}
		}, "; set tls.ca_file"},
		"authorities of the machine": {func(t *testing.T, ours, _ *sinktest.Authority) side {
			return side{ours.Server(t, "spark.test"), sinks.TLS{Enabled: true}}
		}, "SSL_CERT_FILE"},
		"no certificate": {func(t *testing.T, ours, _ *sinktest.Authority) side {
			return side{strict(ours.Server(t, "spark.test")), sinks.TLS{CAFile: ours.File}}
		}, "certificate required; the server refuses the handshake: set tls.cert_file and tls.key_file"},
		"no certificate for TLS 1.2": {func(t *testing.T, ours, _ *sinktest.Authority) side {
			server := strict(ours.Server(t, "spark.test"))
			server.MaxVersion = tls.VersionTLS12
			return side{server, sinks.TLS{CAFile: ours.File}}
		}, "set tls.cert_file and tls.key_file"},
		"certificate of another authority": {func(t *testing.T, ours, theirs *sinktest.Authority) side {
			client := theirs.Client(t, "bridge")
			client.CAFile = ours.File
			return side{strict(ours.Server(t, "spark.test")), client}
		}, "to a certificate that it takes"},
		"certificate that has ended": {func(t *testing.T, ours, _ *sinktest.Authority) side {
			certFile, keyFile := ours.IssueFor(t, "bridge", time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
			return side{strict(ours.Server(t, "spark.test")), sinks.TLS{CAFile: ours.File, CertFile: certFile, KeyFile: keyFile}}
		}, "to a certificate that it takes"},
		"server's certificate has ended": {func(t *testing.T, ours, _ *sinktest.Authority) side {
			pair, err := tls.LoadX509KeyPair(ours.IssueFor(t, "spark.test", time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)))
			if err != nil {
				t.Fatal(err)
			}
			return side{&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}, sinks.TLS{CAFile: ours.File}}
		}, "renew the certificate of the server"},
		"other name": {func(t *testing.T, ours, _ *sinktest.Authority) side {
			return side{namedServer(t, ours), sinks.TLS{CAFile: ours.File}}
		}, "or set tls.server_name to it"},
		"no HTTP/2": {func(t *testing.T, ours, _ *sinktest.Authority) side {
			server := ours.Server(t, "spark.test")
			server.NextProtos = []string{"http/1.1"}
			return side{server, sinks.TLS{CAFile: ours.File}}
		}, "turn it on in the proxy"},
		"no choice of protocols": {func(t *testing.T, ours, _ *sinktest.Authority) side {
			server := ours.Server(t, "spark.test")
			server.NextProtos = []string{}
			return side{server, sinks.TLS{CAFile: ours.File}}
		}, "turn it on in the proxy"},
		"file that has gone": {func(t *testing.T, ours, _ *sinktest.Authority) side {
			return side{ours.Server(t, "spark.test"), sinks.TLS{CAFile: ours.File + ".gone"}}
		}, "there is no such file; put it there"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := c.sides(t, sinktest.NewAuthority(t), sinktest.NewAuthority(t))
				w := behindTLS(t, s.server)
				w.source.TLS = s.client
				w.start()
				after(30 * time.Second)
				w.halt() // which fails if the bridge has ended by itself
				works := c.advice == ""
				if failed := w.log.count("spark connect does not answer") > 0; failed == works || w.log.count(c.advice) == 0 {
					t.Errorf("that there is no answer is said: %t; want %t, with %q:\n%s", failed, !works, c.advice, w.log)
				}
				if attached := w.log.count("state=attached") > 0; attached != works {
					t.Errorf("attached: %t, want %t:\n%s", attached, works, w.log)
				}
			})
		})
	}
}

// A server that speaks no TLS is not spoken to without it.
func TestTLSToAServerWithout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.TLS = sinks.TLS{Enabled: true}
		w.job(query("r1"))
		w.start()
		after(30 * time.Second)
		w.halt()
		if w.log.count("this port does not speak TLS") == 0 || w.log.count("state=attached") > 0 {
			t.Errorf("want nothing but advice:\n%s", w.log)
		}
	})
}

// A certificate that was renewed in place is shown from the next connection on; nobody has to
// restart the bridge.
func TestRenewedCertificateToSpark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours := sinktest.NewAuthority(t)
		w := behindTLS(t, strict(ours.Server(t, "spark.test")))
		certFile, keyFile := ours.IssueFor(t, "bridge", time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
		w.source.TLS = sinks.TLS{CAFile: ours.File, CertFile: certFile, KeyFile: keyFile}
		w.start()
		after(30 * time.Second)
		if w.log.count("state=attached") > 0 {
			t.Errorf("attached with a certificate that has ended:\n%s", w.log)
		}
		renewed := ours.Client(t, "bridge")
		for to, from := range map[string]string{certFile: renewed.CertFile, keyFile: renewed.KeyFile} {
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
		after(2 * time.Minute)
		w.halt()
		if w.log.count("state=attached") != 1 {
			t.Errorf("not attached with the renewed certificate:\n%s", w.log)
		}
	})
}

// Without tls, use_ssl alone has the same advice.
func TestAdviceForUseSSL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := behindTLS(t, sinktest.NewAuthority(t).Server(t, "spark.test"))
		w.source.Remote = configs.ConnectionString("sc://" + w.spark.Addr() + "/;use_ssl=true;user_id=u;session_id=" + sessionID)
		w.start()
		after(30 * time.Second)
		w.halt()
		if w.log.count("set tls.ca_file") == 0 {
			t.Errorf("no advice:\n%s", w.log)
		}
	})
}
