//go:build integration

package integration

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"sparkbridge/connect"
)

// What is wrong and ends the bridge is told in one line, which says what to do, and by the
// exit code.
func TestWhatEndsTheBridge(t *testing.T) {
	here := func(t *testing.T) settings {
		return configure(t, "wrong", "sc://"+at(freePort(t))+"/;user_id="+user+";session_id="+uuid.NewString(), webhookSink(t, "webhook"))
	}
	for _, c := range []struct {
		name string
		make func(t *testing.T) settings
		code int
		says []string // parts of the line
	}{
		{"refused token", func(t *testing.T) settings {
			config := here(t)
			config.source()["remote"], config.source()["token"] = shared.spark40.get(t).Session(user, uuid.NewString()), "wrong"
			return config
		}, 2, []string{"source wrong", "token", "SPARK_CONNECT_AUTHENTICATE_TOKEN"}},
		{"missing token", func(t *testing.T) settings {
			config := here(t)
			config.source()["remote"] = shared.spark40.get(t).Session(user, uuid.NewString())
			return config
		}, 2, []string{"source wrong", "token", "SPARK_CONNECT_AUTHENTICATE_TOKEN"}},
		{"session id that is no UUID", func(t *testing.T) settings {
			config := here(t)
			config.source()["remote"] = shared.spark42.get(t).Session(user, "nightly")
			return config
		}, 2, []string{"session_id", "nightly", "UUID"}},
		{"unknown key", func(t *testing.T) settings {
			config := here(t)
			config.source()["atach"] = "at_once"
			return config
		}, 2, []string{"bridge.yaml:", "atach", "attach"}},
		{"journal below a file", func(t *testing.T) settings { // root may write to any folder
			config := here(t)
			file := folder(t, "file")
			requireNoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
			requireNoError(t, os.WriteFile(file, nil, 0o600))
			config["journal"] = map[string]any{"dir": filepath.Join(file, "journal")}
			return config
		}, 1, []string{"journal", "file/journal", "not a directory"}},
		{"journal of another bridge", func(t *testing.T) settings {
			config := here(t)
			other := startBridge(t, "other", config)
			other.await("that the other bridge runs", 0, isBus("waiting", ""))
			return config
		}, 1, []string{"journal", "wrong", "in use"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bridge := startBridge(t, "bridge", c.make(t))
			code, message := bridge.exit()
			if code != c.code || len(message) != 1 {
				t.Fatalf("exit code %d, want %d; it said %q, want one line", code, c.code, message)
			}
			t.Log(message[0])
			for _, part := range c.says {
				if !strings.Contains(message[0], part) {
					t.Errorf("it says %q, which lacks %q", message[0], part)
				}
			}
		})
	}
}

// What may change by itself is waited for, and told once.
func TestWhatIsWaitedFor(t *testing.T) {
	t.Run("server", func(t *testing.T) {
		bridge := startBridge(t, "bridge", configure(t, "wait", "sc://"+at(freePort(t))+"/;user_id=u;session_id="+uuid.NewString(), webhookSink(t, "webhook")))
		bridge.await("what it waits for", 0, isBus("waiting", "for the server 127.0.0.1"))
		bridge.await("why", 0, isSaid("spark connect does not answer, trying again", "connection refused"))
		bridge.stop()
	})
	t.Run("server of another kind", func(t *testing.T) {
		var tries atomic.Int64
		other := httptest.NewUnstartedServer(http.NotFoundHandler())
		other.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				tries.Add(1)
			}
		}
		other.Start()
		t.Cleanup(other.Close)
		remote := strings.Replace(other.URL, "http:", "sc:", 1) + "/;user_id=u;session_id=" + uuid.NewString()
		bridge := startBridge(t, "bridge", configure(t, "wait", remote, webhookSink(t, "webhook")))
		again(t, "several tries", func() bool { return tries.Load() >= 5 })
		if n := bridge.said.count(isSaid("spark connect does not answer, trying again", "")); n != 1 {
			t.Errorf("it said %d times that the server does not answer, want once", n)
		}
		bridge.stop()
	})
	t.Run("session", sessionIsWaitedFor)
}

// A wrong session id is not made a session by asking for it.
func sessionIsWaitedFor(t *testing.T) {
	spark := shared.spark42.get(t)
	session := &session{t: t, spark: spark, id: uuid.NewString()}
	sink := opened(webhookSink(t, "webhook"))[0]
	wire := tapWire(t, spark.Remote())
	config := configure(t, "wait", wire.remote(session.id), sink)
	config.source()["poll_interval"] = "100ms"
	bridge := startBridge(t, "bridge", config)
	bridge.await("what it waits for", 0, isBus("waiting", "for the session"))
	asked := wire.count("ReleaseExecute")
	again(t, "several tries", func() bool { return wire.count("ReleaseExecute") >= asked+10 })
	if n := wire.count("ExecutePlan") + wire.count("AnalyzePlan") + wire.count("ReattachExecute"); n > 0 {
		t.Errorf("it sent %d calls that may make a session", n)
	}
	if n := bridge.said.count(isBus("waiting", "for the session")); n != 1 {
		t.Errorf("it said %d times that it waits for the session, want once", n)
	}
	if err := probe(t, spark, session.id); !errors.Is(err, connect.ErrSessionNotFound) {
		t.Errorf("asked for the session, Spark says %v, want that it does not exist", err)
	}
	session.join()
	bridge.attached(0)
	run := session.start("healthy")
	sink.awaitCount(t, "events", 1, progressOf(run))
	session.stop("healthy")
	bridge.stop()
}
