package bridge

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/connect/connecttest"
	"sparkbridge/internal/journal"
)

// startOnFull runs a bridge whose journal takes nothing while full is set.
func (w *world) startOnFull(full *atomic.Bool) {
	w.t.Helper()
	w.source.Remote = configs.ConnectionString("sc://" + w.spark.Addr() + "/;user_id=u;session_id=" + sessionID)
	j, err := journal.Open(w.dir, journal.Options{Disturb: func(step journal.Step) error {
		if full.Load() && step != journal.StepSync {
			return syscall.ENOSPC
		}
		return nil
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(w.log, nil))
	client := connect.NewClient(connect.ClientOptions{Log: log, Dial: []grpc.DialOption{grpc.WithContextDialer(w.spark.Dialer)}})
	ctx, stop := context.WithCancel(w.t.Context())
	w.stop, w.done = stop, make(chan error, 1)
	go func() {
		err := carry(ctx, &configs.Config{Sources: []configs.Source{w.source}}, j, client, log, newFace("test"))
		_ = j.Close()
		w.done <- err
	}()
}

// A disk that stays full costs the bus once, and whoever holds the slot when there is
// room again keeps it: that ours was given up is known, although it could not be
// stored.
func TestADiskThatStaysFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		session := w.job(query("a"))
		var full atomic.Bool
		w.startOnFull(&full)
		after(10 * time.Second)
		session.Progress(progress("a", 0))
		after(10 * time.Second)

		full.Store(true)
		session.Progress(progress("a", 1))
		session.SetQueries(remembered("a", 0, 1))
		after(90 * time.Second) // the bus is given up after a minute
		session.HoldBus()
		after(30 * time.Minute)
		if lost := w.log.count("state=lost"); lost != 1 {
			t.Errorf("the loss of the bus was told %d times, want once\n%s", lost, w.log)
		}
		full.Store(false)
		after(2 * time.Minute)
		w.halt()
		if n := w.spark.Removes(); n != 1 {
			t.Errorf("%d REMOVEs, want only that of our own listener", n)
		}
		w.want("events", w.ids(), "a:started:inferred", "a:progress:0", "a:progress:1")
		w.want("states", w.states(), "waiting for the server "+serverOf(w), "attached", "lost", "taken", "polling", "closed")
	})
}

// Without its folder the bridge keeps nothing, so it does not go on as if it did.
func TestAJournalThatIsRemovedEndsTheBridge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		session := w.job(query("a"))
		w.start()
		after(10 * time.Second)
		if err := os.RemoveAll(w.dir); err != nil {
			t.Fatal(err)
		}
		session.Progress(progress("a", 0))
		err := w.wait()
		var exit *exitError
		if !errors.As(err, &exit) || exit.code != exitBroken || !errors.Is(err, journal.ErrGone) {
			t.Errorf("the bridge ended with %v", err)
		}
		if n := w.spark.Removes(); n != 1 {
			t.Errorf("%d REMOVEs, want one: nobody can read on in the operation", n)
		}
	})
}
