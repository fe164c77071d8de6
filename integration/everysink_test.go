//go:build integration

package integration

import (
	"maps"
	"testing"
	"time"

	"sparkbridge/integration/servers"
	"sparkbridge/listener"
)

// The promise, with nothing going wrong but streams that end every 5 s, as they do by design:
// every event of Spark's own log is at every sink, as the contract says, byte for byte.
func TestEverySinkHoldsTheEventLog(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"4.2", "4.0"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel() // each has a Spark server of its own
			everySinkHoldsTheEventLog(t, version)
		})
	}
}

func everySinkHoldsTheEventLog(t *testing.T, version string) {
	source, spark := "every-42", shared.spark42.get
	if version == "4.0" {
		source, spark = "every-40", shared.spark40.get
	}
	session := openSession(t, spark(t), "--fail-after", "6")
	sinks := three(t, shared.kafka.get(t), shared.nats.get(t), source)
	wire := tapWire(t, session.spark.Remote())
	config := configure(t, source, wire.remote(session.id), sinks...)
	if version == "4.0" {
		config.source()["token"] = token40
	}
	bridge := startBridge(t, source, config)
	bridge.attached(0)

	healthy := session.start("healthy=orders")
	stateful := session.start("stateful=Umsatz pro Stunde (EU)")
	idle := session.start("idle")
	session.start("failing")
	session.start("unnamed")
	session.start("odd")
	awaitLife(t, session, wire, healthy, stateful, idle)
	session.stop("healthy", "stateful", "idle", "unnamed", "odd")

	want := session.logged()
	for _, s := range sinks {
		s.await(t, s.name, lacks(want))
	}
	bridge.stop()
	checkEverything(t, session, source, want, wire, sinks, journaled(t, config.journal()))
}

// awaitLife waits until the queries have shown all that they can: batches, state, silence, a
// failure, and several streams of the bus that ended in good order.
func awaitLife(t *testing.T, session *session, wire *wire, healthy, stateful, idle servers.Fact) {
	t.Helper()
	again(t, "a life of the queries", func() bool {
		return session.countInLog("progress", healthy) >= 20 && session.countInLog("progress", stateful) >= 5 &&
			session.countInLog("idle", idle) >= 2 && failures(session) == 1 && wire.cleanEnds() >= 5
	})
}

func failures(s *session) (n int) {
	for _, e := range s.inLog() {
		if e.Kind == "terminated" {
			n++
		}
	}
	return n
}

func checkEverything(t *testing.T, session *session, source string, want []expected, wire *wire, sinks []*sink, events []listener.Event) {
	t.Helper()
	checkJournal(t, want, events)
	checkWire(t, wire.events(t), events)
	attributes := map[string]map[string]string{}
	for _, s := range sinks {
		arrivals, _ := s.all()
		checkDeliveries(t, s.name, want, arrivals)
		checkSame(t, s.name, events, arrivals)
		byID := map[string]arrival{}
		for _, a := range arrivals {
			byID[a.id()] = a
			if earlier := attributes[a.id()]; earlier != nil && !maps.Equal(earlier, a.attributes) {
				t.Errorf("%s: attributes of %s differ from those at another sink:\n%v\n%v", s.name, a.id(), a.attributes, earlier)
			}
			attributes[a.id()] = a.attributes
		}
		for _, e := range want {
			a := byID[e.id]
			checkCloudEvent(t, s.name, source, session.id, e, a)
			if place, key := wantPlace(s, source, e); a.place != place || a.key != key {
				t.Errorf("%s: %s is at %s under key %s, want %s under %s", s.name, e.id, a.place, a.key, place, key)
			}
		}
		checkAttached(t, s, source, byID)
	}
	checkFailure(t, want)
	t.Logf("%d events in the log", len(want))
}

// checkFailure makes sure that the test has seen a failure of which Spark gave a class.
func checkFailure(t *testing.T, want []expected) {
	t.Helper()
	for _, e := range want {
		if e.kind == "terminated" && e.run.Query == "failing" {
			if e.exception == "" || e.class == "" {
				t.Errorf("the event log has the end of the failing query without exception or class: %+v", e)
			}
			return
		}
	}
	t.Error("the event log has no end of the failing query")
}

// checkAttached requires that the sink was told of the bus.
func checkAttached(t *testing.T, s *sink, source string, byID map[string]arrival) {
	t.Helper()
	for _, a := range byID {
		if a.kind() == "bus" && a.attributes["source"] == "/spark/"+source && a.attributes["subject"] == source &&
			a.attributes["partitionkey"] == source && instant(t, a.attributes["time"]).After(time.Now().Add(-time.Hour)) {
			return
		}
	}
	t.Errorf("%s: no bus event came", s.name)
}
