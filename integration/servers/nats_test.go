//go:build integration

package servers

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func startNATS(t *testing.T, options NATSOptions) *NATS {
	t.Helper()
	options.Dir = t.TempDir()
	server, err := StartNATS(within(t, 4*time.Minute), options)
	requireNoError(t, err)
	stopped(t, server)
	return server
}

func jetStream(t *testing.T, server *NATS) jetstream.JetStream {
	t.Helper()
	connection, err := nats.Connect(server.URL(), nats.ReconnectWait(50*time.Millisecond), nats.MaxReconnects(-1))
	requireNoError(t, err)
	t.Cleanup(connection.Close)
	js, err := jetstream.New(connection)
	requireNoError(t, err)
	return js
}

func TestNATSKeepsDataOverKill(t *testing.T) {
	server := startNATS(t, NATSOptions{})
	js := jetStream(t, server)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"spark.>"}})
	requireNoError(t, err)
	for n := range 100 {
		_, err := js.Publish(within(t, time.Minute), "spark.test", fmt.Appendf(nil, "message %d", n))
		requireNoError(t, err)
	}
	pid := server.Pid()
	server.Kill()
	requireGone(t, pid, server.Port())
	requireNoError(t, server.Restart(within(t, time.Minute)))

	stream, err := jetStream(t, server).Stream(within(t, time.Minute), "EVENTS")
	requireNoError(t, err)
	last, err := stream.GetLastMsgForSubject(within(t, time.Minute), "spark.test")
	requireNoError(t, err)
	if last.Sequence != 100 || string(last.Data) != "message 99" {
		t.Errorf("last message is %d %q", last.Sequence, last.Data)
	}
	pid = server.Pid()
	requireNoError(t, server.Stop())
	requireGone(t, pid, server.Port())
}

func TestNATSPause(t *testing.T) {
	server := startNATS(t, NATSOptions{})
	js := jetStream(t, server)
	_, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"spark.>"}})
	requireNoError(t, err)
	server.Pause()
	requireState(t, server.Pid(), "T")
	frozen, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := js.Publish(frozen, "spark.test", nil); err == nil {
		t.Error("a paused server acknowledged a message")
	}
	server.Resume()
	_, err = js.Publish(within(t, time.Minute), "spark.test", nil)
	requireNoError(t, err)
}

func TestNATSConfig(t *testing.T) {
	server := startNATS(t, NATSOptions{Config: `authorization: {token: "s3cret"}`})
	if _, err := nats.Connect(server.URL()); err == nil {
		t.Error("a client without the token was let in")
	}
	connection, err := nats.Connect(server.URL(), nats.Token("s3cret"))
	requireNoError(t, err)
	connection.Close()
}
