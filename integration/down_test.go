//go:build integration

package integration

import (
	"net"
	"slices"
	"strconv"
	"testing"

	"sparkbridge/integration/servers"
)

// A sink whose server is not there delays nobody. When the server comes up, the sink gets
// everything from its start on, in order. All three kinds are down here, beside three that are
// up, and come up one after the other.
func TestASinkThatIsDownFromTheStart(t *testing.T) {
	const source = "down"
	spark, kafka, nats := shared.all(t)
	up := three(t, kafka, nats, source)
	down := threeDown(t, source)
	session := openSession(t, spark)
	config := configure(t, source, spark.Session(user, session.id), append(down, up...)...)
	bridge := startBridge(t, source, config)
	bridge.attached(0)
	healthy := session.start("healthy")
	session.start("odd")

	for _, late := range down {
		for _, s := range up {
			s.awaitCount(t, s.name+", with "+late.name+" down", s.count(progressOf(healthy))+3, progressOf(healthy))
		}
		late.open()
		late.awaitCount(t, late.name+", now up", 1, progressOf(healthy))
	}
	session.stop("healthy", "odd")
	want := session.logged()
	for _, s := range append(down, up...) {
		checkDeliveries(t, s.name, want, s.await(t, s.name, lacks(want)))
		checkTold(t, bridge, s, slices.Contains(down, s))
	}
	bridge.stop()
	checkJournal(t, want, journaled(t, config.journal()))
}

// checkTold requires that the bridge has said of a sink that it failed, not with every try,
// and that it works again; or nothing of the kind.
func checkTold(t *testing.T, bridge *bridge, s *sink, failed bool) {
	t.Helper()
	of := `"sink":"` + s.name + `"`
	fails, works := bridge.said.count(isSaid("sink fails, will try again", of)), bridge.said.count(isSaid("sink works again", of))
	switch {
	case failed && (fails < 1 || fails > 8 || works != 1):
		t.Errorf("of %s the bridge said %d times that it fails, and %d times that it works again", s.name, fails, works)
	case !failed && fails+works > 0:
		t.Errorf("of %s, which always worked, the bridge said %d times that it fails", s.name, fails)
	}
}

// threeDown are a sink of each kind whose servers start when the sinks are opened.
func threeDown(t *testing.T, source string) []*sink {
	t.Helper()
	natsAt, kafkaAt := freePort(t), freePort(t)
	fromNATS := natsSink(t, "late-nats", "nats://"+at(natsAt), source)
	fromNATS.open = after(fromNATS.open, func() {
		server, err := servers.StartNATS(t.Context(), servers.NATSOptions{Port: natsAt, Dir: folder(t, "nats")})
		requireNoError(t, err)
		stopAtEnd(t, server)
	})
	var broker *servers.Kafka
	fromKafka := kafkaSink(t, "late-kafka", at(kafkaAt), source, func() *servers.Kafka { return broker })
	fromKafka.open = after(fromKafka.open, func() {
		var err error
		broker, err = servers.StartKafka(t.Context(), servers.KafkaOptions{Port: kafkaAt, Dir: folder(t, "kafka")})
		requireNoError(t, err)
		stopAtEnd(t, broker)
	})
	return []*sink{fromNATS, fromKafka, webhookSink(t, "late-webhook")}
}

func after(open, start func()) func() {
	return func() {
		start()
		open()
	}
}

func freePort(t *testing.T) int {
	t.Helper()
	port, err := servers.FreePort()
	requireNoError(t, err)
	return port
}

func at(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func stopAtEnd(t *testing.T, server interface{ Stop() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
}
