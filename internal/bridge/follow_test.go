package bridge

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
	"sparkbridge/listener"
)

// document is an entry of recent_progress.
func document(run string, batch int) string {
	return fmt.Sprintf(`{"id":"q-%s","runId":"%s","name":"n-%s","timestamp":"2026-01-01T00:00:00.000Z","batchId":%d,"durationMs":{"addBatch":1},"sources":[{"numInputRows":1}]}`, run, run, run, batch)
}

func remembered(run string, batches ...int) connecttest.Query {
	q := query(run)
	for _, b := range batches {
		q.Recent = append(q.Recent, document(run, b))
	}
	return q
}

func TestTakeoverTakesTheBusOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.Takeover = true
		s := w.job(query("a"))
		s.HoldBus()
		w.start()
		after(time.Minute)
		s.Progress(progress("a", 0))
		after(time.Second)
		w.halt()
		w.want("states", w.states(), "waiting for the server "+serverOf(w), "taken", "attached", "closed")
		w.want("events", w.ids(), "a:started:inferred", "a:progress:0")
		if w.spark.Removes() != 2 { // the owner's, and ours at the end
			t.Errorf("%d REMOVEs", w.spark.Removes())
		}
	})
}

func TestModeBusWaitsForATakenBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.Mode = configs.ModeBus
		s := w.job(remembered("a", 0, 1))
		s.HoldBus()
		w.start()
		after(time.Hour)
		w.halt()
		w.want("states", w.states(), "waiting for the server "+serverOf(w), "taken", "closed")
		w.want("events", w.ids())
	})
}

// While another client holds the bus the session is polled, and nothing is lost or
// repeated on the way there and back.
func TestATakenBusIsPolled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		s := w.job(remembered("a", 0, 1))
		s.HoldBus()
		w.start()
		after(time.Minute)
		s.SetQueries(remembered("a", 0, 1, 2))
		after(time.Minute)
		s.RemoveBus()
		after(15 * time.Minute) // back on the bus
		s.SetQueries(remembered("a", 0, 1, 2, 3))
		s.Progress(progress("a", 3))
		after(time.Minute)
		w.halt()
		w.want("states", w.states(), "waiting for the server "+serverOf(w), "taken", "polling", "attached", "closed")
		w.want("events", w.ids(), "a:started:inferred", "a:progress:0", "a:progress:1", "a:progress:2", "a:progress:3")
	})
}

func TestSparkWithoutABusIsPolled(t *testing.T) {
	for name, mode := range map[string]configs.Mode{"auto": configs.ModeAuto, "poll": configs.ModePoll} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, connecttest.Options{Version: connecttest.Spark35})
				w.source.Mode = mode
				s := w.job(remembered("a", 0))
				w.start()
				after(time.Minute)
				failed := remembered("a", 0, 1)
				failed.Stopped, failed.Exception = true, "boom"
				s.SetQueries(failed)
				after(2 * time.Minute)
				w.halt()
				w.want("states", w.states(), "waiting for the server "+serverOf(w), "polling", "closed")
				w.want("events", w.ids(), "a:started:inferred", "a:progress:0", "a:progress:1", "a:terminated:inferred")
				end := w.events()[len(w.events())-2] // before that the bridge stops
				if end.Outcome != listener.OutcomeFailed || !strings.Contains(string(end.Payload), `"exception":"boom"`) {
					t.Errorf("%s %s", end.Outcome, end.Payload)
				}
			})
		})
	}
}

func TestPollingNeverTakesTheBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.Mode = configs.ModePoll
		s := w.job(remembered("a", 0))
		w.start()
		after(time.Hour)
		s.Close()
		if err := w.wait(); err == nil || !strings.Contains(err.Error(), "closed for ever") {
			t.Errorf("ended with %v", err)
		}
		if w.spark.Adds() != 0 || w.spark.Removes() != 0 {
			t.Errorf("%d ADDs, %d REMOVEs", w.spark.Adds(), w.spark.Removes())
		}
		w.want("events", w.ids(), "a:started:inferred", "a:progress:0", "a:terminated:inferred")
		for _, e := range w.events() {
			if e.Kind == listener.KindTerminated && e.Outcome != listener.OutcomeSessionClosed {
				t.Errorf("outcome %s", e.Outcome)
			}
		}
	})
}

// A job leaves each new session in a file.
func TestRemoteFileBringsTheNextSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const second = "5b0d2c1e-8f0a-4c53-9a58-7b1f0a4f3e12"
		w := newWorld(t, connecttest.Options{})
		w.source.RemoteFile = filepath.Join(t.TempDir(), "remote")
		write := func(id string) {
			if err := os.WriteFile(w.source.RemoteFile, []byte("sc://"+w.spark.Addr()+"/;user_id=u;session_id="+id+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		w.start()
		after(time.Minute) // no file yet
		s := w.job(query("a"))
		write(sessionID)
		after(time.Minute)
		s.Progress(progress("a", 0))
		after(time.Second)
		s.Close()
		after(time.Hour)
		next, err := w.spark.CreateSession("u", second)
		if err != nil {
			t.Fatal(err)
		}
		next.SetQueries(query("b"))
		write(second)
		after(time.Minute)
		next.Progress(progress("b", 1))
		after(time.Second)
		w.halt()
		w.want("events", w.ids(), "a:started:inferred", "a:progress:0", "a:terminated", "b:started:inferred", "b:progress:1")
		if last := w.events(); last[len(last)-1].SessionID != second {
			t.Errorf("the last event is of session %s", last[len(last)-1].SessionID)
		}
		if n := w.log.count("for a connection string in"); n != 1 {
			t.Errorf("the missing file was told %d times\n%s", n, w.log)
		}
	})
}

// The file may name another session while the one before still lives.
func TestRemoteFileThatChangesMovesTheBridge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const second = "5b0d2c1e-8f0a-4c53-9a58-7b1f0a4f3e12"
		w := newWorld(t, connecttest.Options{})
		w.source.RemoteFile, w.source.OnStop = filepath.Join(t.TempDir(), "remote"), configs.OnStopKeep
		write := func(id string) {
			if err := os.WriteFile(w.source.RemoteFile, []byte("sc://"+w.spark.Addr()+"/;user_id=u;session_id="+id), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := w.job(query("a"))
		write(sessionID)
		w.start()
		after(time.Minute)
		next, err := w.spark.CreateSession("u", second)
		if err != nil {
			t.Fatal(err)
		}
		next.SetQueries(query("b"))
		write(second)
		after(time.Minute)
		if _, taken := s.Holder(); taken {
			t.Error("the bus of the first session is not free")
		}
		if _, taken := next.Holder(); !taken {
			t.Error("the bus of the second session is not ours")
		}
		after(5 * time.Minute)
		w.halt()
		// The query of the first session may still run: it has no end.
		w.want("events", w.ids(), "a:started:inferred", "b:started:inferred")
	})
}

// While the bridge is down its session is closed, and the file names the next one. The
// server still knows how the first one ended.
func TestASessionThatWasClosedWhileTheBridgeWasDownIsEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const second = "5b0d2c1e-8f0a-4c53-9a58-7b1f0a4f3e12"
		w := newWorld(t, connecttest.Options{})
		s := w.job(query("a"))
		w.start()
		after(time.Minute)
		s.Progress(progress("a", 0))
		after(time.Second)
		w.halt()
		s.Close()
		next, err := w.spark.CreateSession("u", second)
		if err != nil {
			t.Fatal(err)
		}
		next.SetQueries(query("b"))
		w.source.Remote = configs.ConnectionString("sc://" + w.spark.Addr() + "/;user_id=u;session_id=" + second)
		w.start()
		after(time.Minute)
		w.halt()
		w.want("events", w.ids(), "a:started:inferred", "a:progress:0", "a:terminated:inferred", "b:started:inferred")
		for _, e := range w.events() {
			if e.Kind == listener.KindTerminated && (e.Outcome != listener.OutcomeSessionClosed || e.SessionID != sessionID) {
				t.Errorf("%s has outcome %s and session %s", e.ID, e.Outcome, e.SessionID)
			}
		}
	})
}

// A query that ended a moment before the file names another session has its end: the
// session is asked once more when it is left.
func TestALeftSessionIsAskedOnceMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.RemoteFile = filepath.Join(t.TempDir(), "remote")
		write := func(id string) {
			if err := os.WriteFile(w.source.RemoteFile, []byte("sc://"+w.spark.Addr()+"/;user_id=u;session_id="+id), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		s := w.job(query("a"))
		write(sessionID)
		w.start()
		after(time.Minute)
		ended := remembered("a", 0)
		ended.Stopped, ended.Exception = true, "boom"
		s.SetQueries(ended) // and nothing of it comes by the bus
		write("5b0d2c1e-8f0a-4c53-9a58-7b1f0a4f3e12")
		after(20 * time.Second)
		w.halt()
		w.want("events", w.ids(), "a:started:inferred", "a:progress:0", "a:terminated:inferred")
		for _, e := range w.events() {
			if e.Kind == listener.KindTerminated && (e.Outcome != listener.OutcomeFailed || e.SessionID != sessionID) {
				t.Errorf("%s has outcome %s and session %s", e.ID, e.Outcome, e.SessionID)
			}
		}
	})
}

// A crash between the opening of a new bus and the first questions leaves them to the
// next process, which reads on in that bus.
func TestWhatANewBusOwesIsAskedForAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.OnStop, w.source.Attach = configs.OnStopKeep, configs.AttachAtOnce
		s := w.job(remembered("a", 0))
		w.start()
		after(time.Minute)
		w.halt()
		s.RemoveBus() // the operation is over: the next start opens another one
		s.SetQueries(remembered("a", 0, 1))
		w.spark.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Before: func(ctx context.Context) {
			for range 40 { // all but the ADD, whose turn is first, wait until the process is gone
				w.spark.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Hang: true})
			}
		}})
		w.start()
		after(20 * time.Second)
		w.halt()
		w.spark.Heal()
		w.want("events before", w.ids(), "a:started:inferred", "a:progress:0")
		w.start()
		after(time.Minute)
		w.halt()
		w.want("events", w.ids(), "a:started:inferred", "a:progress:0", "a:progress:1")
		if w.spark.Adds() != 2 {
			t.Errorf("%d ADDs", w.spark.Adds())
		}
	})
}

// A session without queries is let go, so that Spark can close it.
func TestDetachWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.DetachWhenIdle = 30 * time.Minute
		s := w.job(query("a"))
		w.start()
		after(time.Hour)
		if _, taken := s.Holder(); !taken {
			t.Error("detached though a query is active")
		}
		s.SetQueries()
		after(31 * time.Minute)
		if _, taken := s.Holder(); taken {
			t.Error("the bus is still held")
		}
		calls := len(w.spark.Calls())
		after(time.Hour)
		if n := len(w.spark.Calls()) - calls; n != 0 {
			t.Errorf("the session was asked %d times after it was let go", n)
		}
		s.SetQueries(query("b"))
		after(10 * time.Minute)
		if _, taken := s.Holder(); !taken {
			t.Error("a query that came later is not followed")
		}
		w.halt()
	})
}

// An event that cannot be received ends the bus once, and is named.
func TestAnEventThatIsTooLargeIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		s := w.job(query("a"))
		w.source.Remote = configs.ConnectionString(fmt.Sprintf("sc://%s/;user_id=u;session_id=%s;grpc_max_message_size=100000", w.spark.Addr(), sessionID))
		w.start()
		after(time.Minute)
		s.Progress(progress("a", 0))
		s.Progress(strings.Replace(progress("a", 1), `"n-a"`, `"`+strings.Repeat("x", 200_000)+`"`, 1))
		after(time.Minute)
		s.Progress(progress("a", 2))
		after(time.Minute)
		w.halt()
		w.want("events", w.ids(), "a:started:inferred", "a:progress:0", "a:gap:1-1", "a:progress:2")
		for _, e := range w.events() {
			if e.Kind == listener.KindGap && !strings.Contains(string(e.Payload), `"reason":"too_large"`) {
				t.Errorf("gap %s", e.Payload)
			}
		}
		if w.spark.Adds() != 2 {
			t.Errorf("%d ADDs", w.spark.Adds())
		}
	})
}

func TestALostConnectionIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		s := w.job(query("a"))
		w.start()
		after(time.Minute)
		w.spark.Refuse(true)
		w.spark.Disconnect()
		after(4 * time.Minute)
		w.spark.Refuse(false)
		after(time.Minute)
		s.Progress(progress("a", 0))
		after(time.Second)
		w.halt()
		w.want("states", w.states(), "waiting for the server "+serverOf(w), "attached", "waiting for the server", "attached", "closed")
		w.want("events", w.ids(), "a:started:inferred", "a:progress:0")
	})
}
