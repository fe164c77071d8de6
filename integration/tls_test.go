//go:build integration

package integration

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"strings"
	"testing"

	"sparkbridge/connect/connecttest"
	"sparkbridge/integration/servers"
	"sparkbridge/sinks/sinktest"
)

// Spark itself speaks no TLS: a proxy does, and wants a certificate here, behind which Spark
// wants its token. A bridge that lacks what the proxy wants waits, and says what it lacks.
func TestTLSToSparkWithToken(t *testing.T) {
	const source, token = "secured", "a-token-behind-tls"
	spark, err := servers.StartSpark(t.Context(), servers.SparkOptions{Version: "4.2", Token: token, Dir: folder(t, "spark"),
		Conf: map[string]string{"spark.connect.execute.reattachable.senderMaxStreamDuration": "5s"}})
	requireNoError(t, err)
	stopAtEnd(t, spark)
	ours := sinktest.NewAuthority(t)
	proxy := ours.Server(t, "spark.test")
	proxy.ClientAuth = tls.RequireAndVerifyClientCert
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	requireNoError(t, err)
	connecttest.StartTLSProxy(t, listener, proxy, func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(spark.Port()))
	})
	session := openSession(t, spark)
	sink := opened(webhookSink(t, "webhook"))[0]
	config := configure(t, source, "sc://"+listener.Addr().String()+"/;user_id="+user+";session_id="+session.id, sink)
	config.source()["token"] = token

	config.source()["tls"] = map[string]any{"ca_file": ours.File}
	bridge := startBridge(t, source, config)
	bridge.await("that a certificate is missing", 0, isSaid("spark connect does not answer, trying again", "set tls.cert_file and tls.key_file"))
	bridge.stop()

	shown := ours.Client(t, "bridge")
	config.source()["tls"] = map[string]any{"ca_file": shown.CAFile, "cert_file": shown.CertFile, "key_file": shown.KeyFile}
	report := checkConnect(t, config, 0)
	if said := report.finding("token"); said != "ok: accepted" {
		t.Errorf("of the token the check says %q", said)
	}
	bridge = startBridge(t, source, config)
	bridge.attached(0)
	run := session.start("healthy")
	sink.awaitCount(t, "events", 3, progressOf(run))
	session.stop("healthy")
	finish(t, bridge, source, config.journal(), sink, account{session: session, idles: true})

	config.source()["token"] = "wrong"
	bridge = startBridge(t, source, config)
	if code, message := bridge.exit(); code != 2 || !strings.Contains(strings.Join(message, ""), "token") {
		t.Errorf("with a wrong token it exits with %d and says %q, want 2 and the token", code, message)
	}
}
