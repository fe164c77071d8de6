package bridge

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect/connecttest"
	"sparkbridge/internal/journal"
)

func TestASourceWaitsForServerSessionAndQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		if err := w.spark.Stop(); err != nil {
			t.Fatal(err)
		}
		w.start()
		after(10 * time.Minute)
		if err := w.spark.Restart(); err != nil {
			t.Fatal(err)
		}
		after(5 * time.Minute)
		if _, made := w.spark.Session("u", sessionID); made {
			t.Fatal("the bridge made the session")
		}
		s := w.job()
		after(time.Minute)
		if w.spark.Adds() != 0 {
			t.Fatal("the bus was opened before the first query")
		}
		s.SetQueries(query("a"))
		after(time.Minute)
		s.Progress(progress("a", 0))
		after(time.Minute)
		w.halt()
		w.want("states", w.states(), "waiting for the server "+serverOf(w), "waiting for the session", "waiting for a query", "attached", "closed")
		w.want("events", w.ids(), "a:started:inferred", "a:progress:0")
		if holder, taken := s.Holder(); taken {
			t.Errorf("the bus is still held by %q", holder)
		}
		if n := w.log.count("state=waiting"); n != 3 {
			t.Errorf("waiting was logged %d times:\n%s", n, w.log)
		}
	})
}

// serverOf is how the address stands before the first colon of a reason.
func serverOf(w *world) string {
	host, _, _ := strings.Cut(w.spark.Addr(), ":")
	return host
}

func TestCreateSessionMakesItAndAttachesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.CreateSession = true
		w.start()
		after(time.Minute)
		s, made := w.spark.Session("u", sessionID)
		if !made {
			t.Fatal("the session was not made")
		}
		if _, taken := s.Holder(); !taken {
			t.Error("the bus was not opened")
		}
		w.halt()
	})
}

// Restarted within Spark's window, the bridge reads on in the same operation, and
// nothing between the two is lost or repeated.
func TestARestartReadsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.OnStop = configs.OnStopKeep
		s := w.job(query("a"))
		for batch := range 5 {
			w.start()
			after(time.Minute)
			s.Progress(progress("a", 2*batch))
			after(time.Minute)
			w.halt()
			s.Progress(progress("a", 2*batch+1))
			after(time.Minute)
		}
		w.start()
		after(time.Minute)
		w.halt()
		w.want("events", w.ids(), "a:started:inferred", "a:progress:0", "a:progress:1", "a:progress:2", "a:progress:3",
			"a:progress:4", "a:progress:5", "a:progress:6", "a:progress:7", "a:progress:8", "a:progress:9")
		if w.spark.Adds() != 1 || w.spark.Removes() != 0 {
			t.Errorf("%d ADDs and %d REMOVEs", w.spark.Adds(), w.spark.Removes())
		}
	})
}

func TestACleanStopDrainsAndFreesTheBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		s := w.job(query("a"))
		w.start()
		after(time.Minute)
		for batch := range 300 {
			s.Progress(progress("a", batch))
		}
		w.halt() // at once, with events on the way
		if got := w.ids(); len(got) != 301 {
			t.Errorf("%d events are in the journal, want the start and 300 batches", len(got))
		}
		w.start()
		after(time.Minute)
		if w.spark.Adds() != 2 || w.log.count("state=attached") != 2 {
			t.Errorf("%d ADDs, log:\n%s", w.spark.Adds(), w.log)
		}
		w.halt()
	})
}

func TestATakenBusIsTriedRarelyUntilItIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		s := w.job(query("a"))
		s.HoldBus()
		w.start()
		after(time.Hour)
		if adds := w.spark.Adds() / 2; adds < 5 || adds > 12 { // each is sent twice, under one id
			t.Errorf("the taken bus was tried %d times in an hour", adds)
		}
		if w.spark.Removes() != 0 {
			t.Error("the owner's listener was removed")
		}
		s.RemoveBus()
		after(12 * time.Minute)
		s.Progress(progress("a", 7))
		after(time.Second)
		w.halt()
		w.want("states", w.states(), "waiting for the server "+serverOf(w), "taken", "polling", "attached", "closed")
		w.want("events", w.ids(), "a:started:inferred", "a:progress:7")
	})
}

func TestAfterAForeignRemoveTheBusIsTakenBackLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		s := w.job(query("a"))
		w.start()
		after(time.Minute)
		s.RemoveBus()
		after(9 * time.Second)
		if w.spark.Adds() != 1 {
			t.Error("the bus was taken back at once")
		}
		after(time.Minute)
		s.Progress(progress("a", 3))
		after(time.Second)
		w.halt()
		w.want("states", w.states(), "waiting for the server "+serverOf(w), "attached", "lost", "attached", "closed")
		w.want("events", w.ids(), "a:started:inferred", "a:progress:3")
	})
}

func TestARestartedDriverIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.job(query("a")).Progress(progress("a", 0))
		w.start()
		after(time.Minute)
		if err := errors.Join(w.spark.Stop(), w.spark.Restart()); err != nil {
			t.Fatal(err)
		}
		after(10 * time.Minute)
		s := w.job(query("b"))
		after(time.Minute)
		s.Progress(progress("b", 12))
		after(time.Second)
		w.halt()
		w.want("states", w.states(), "waiting for the server "+serverOf(w), "attached", "lost", "waiting for the session", "attached", "closed")
		w.want("events", w.ids(), "a:started:inferred", "a:terminated:inferred", "b:started:inferred", "b:progress:12")
	})
}

// What nobody but the user can mend ends the bridge, with the code that tells it.
func TestDefiniteRefusalsEndTheBridge(t *testing.T) {
	for name, c := range map[string]struct {
		options connecttest.Options
		prepare func(w *world)
		code    int
		says    string
	}{
		"wrong token": {connecttest.Options{Token: "right"}, func(*world) {}, 2, "token"},
		"session closed": {connecttest.Options{}, func(w *world) {
			w.job().Close()
		}, 1, "new session_id"},
		"spark 3.5": {connecttest.Options{Version: connecttest.Spark35}, func(w *world) {
			w.source.Mode = configs.ModeBus
			w.job(query("a"))
		}, 1, "Spark 4.0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, c.options)
				c.prepare(w)
				w.start()
				err := w.wait()
				var exit interface{ ExitCode() int }
				if !errors.As(err, &exit) || exit.ExitCode() != c.code {
					t.Fatalf("the bridge ended with %v", err)
				}
				if !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "etl") || strings.Contains(err.Error(), "\n") {
					t.Errorf("the error does not help: %v", err)
				}
			})
		})
	}
}

func TestASessionThatClosesUnderTheBridgeEndsItsSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		s := w.job(query("a"))
		w.start()
		after(time.Minute)
		s.Progress(progress("a", 0))
		s.Close()
		err := w.wait()
		if err == nil || !strings.Contains(err.Error(), "closed for ever") {
			t.Errorf("the bridge ended with %v", err)
		}
		w.want("events", w.ids(), "a:started:inferred", "a:progress:0", "a:terminated")
	})
}

// Retention waits for the marks, and the marks for everything admitted.
func TestMarksAreStoredWhileTheBridgeRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		s := w.job(query("a"))
		w.start()
		after(10 * time.Second)
		s.Progress(progress("a", 0))
		after(2 * keepEvery)
		w.halt()
		j, err := journal.Open(w.dir, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		covered, blob, ok, err := j.State().Marks("etl")
		_, next := j.Bounds()
		if err != nil || !ok || covered != next || !strings.Contains(string(blob), `"a":{"batch":0`) {
			t.Errorf("marks: %d of %d %s %v %v", covered, next, blob, ok, err)
		}
	})
}
