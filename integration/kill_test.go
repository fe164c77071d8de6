//go:build integration

package integration

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// seed makes the moments of a run; SPARKBRIDGE_SEED repeats one.
func seed(t *testing.T) uint64 {
	t.Helper()
	chosen := rand.Uint64()
	if text := os.Getenv("SPARKBRIDGE_SEED"); text != "" {
		var err error
		chosen, err = strconv.ParseUint(text, 10, 64)
		requireNoError(t, err)
	}
	t.Logf("seed: SPARKBRIDGE_SEED=%d", chosen)
	return chosen
}

// Killed ten times in a row, whatever it is doing, the bridge loses nothing, repeats only with
// equal ids and bytes, and has nothing twice in its journal.
func TestKillNine(t *testing.T) {
	const source, kills = "kill", 10
	spark, kafka, nats := shared.all(t)
	moments := rand.New(rand.NewPCG(seed(t), 0))
	session := openSession(t, spark, "--trigger", "200 milliseconds")
	sinks := three(t, kafka, nats, source)
	config := configure(t, source, spark.Session(user, session.id), sinks...)
	bridge := startBridge(t, source, config)
	bridge.attached(0)
	session.start("healthy")
	session.start("stateful")
	session.start("unnamed")

	for kill := range kills {
		life := time.Duration(moments.Int64N(int64(2500 * time.Millisecond)))
		select {
		case <-time.After(life):
		case <-bridge.Exited():
			t.Fatalf("the bridge ended by itself with %d", bridge.ExitCode())
		}
		lines, _ := bridge.said.all()
		bridge.Kill()
		t.Logf("kill %d after %s and %d lines", kill+1, life.Round(time.Millisecond), len(lines))
		requireNoError(t, bridge.Restart(t.Context()))
	}
	again(t, "batches of all queries", func() bool {
		for _, run := range session.runs {
			if session.countInLog("progress", run) < 10 {
				return false
			}
		}
		return true
	})
	session.stop("healthy", "stateful", "unnamed")
	want := session.logged()
	for _, s := range sinks {
		checkDeliveries(t, s.name, want, s.await(t, s.name, lacks(want)))
	}
	bridge.stop()
	events := journaled(t, config.journal())
	checkJournal(t, want, events)
	for _, s := range sinks {
		arrivals, _ := s.all()
		checkSame(t, s.name, events, arrivals)
	}
}
