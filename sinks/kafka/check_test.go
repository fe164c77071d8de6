package kafka

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// wantFindings compares what was asked after, whether it works ("ok", "unknown",
// "problem"), and a part of what is said.
func wantFindings(t *testing.T, found []sinks.Finding, want ...[3]string) {
	t.Helper()
	for _, f := range found {
		t.Logf("%s: %s %v", f.About, f.Text, f.Problem)
	}
	if len(found) != len(want) {
		t.Fatalf("%d findings, want %d", len(found), len(want))
	}
	for i, f := range found {
		state, says := "ok", f.Text
		if f.Unknown {
			state = "unknown"
		}
		if f.Problem != nil {
			state, says = "problem", f.Problem.Error()
		}
		if f.About != want[i][0] || state != want[i][1] || !strings.Contains(says, want[i][2]) || strings.Contains(says, "\n") {
			t.Errorf("finding %d is %s %s: %s, want %v", i, f.About, state, says, want[i])
		}
	}
}

func checkOf(ctx context.Context, t *testing.T, broker, topic string) []sinks.Finding {
	t.Helper()
	sink, err := New(Config{Brokers: []string{broker}, Topic: topic}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	return sink.Check(ctx, []string{"etl", "billing"})
}

func TestCheckOfBrokersThatDoNotAnswer(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	wantFindings(t, checkOf(ctx, t, silent.Addr().String(), "events"), [3]string{"broker", "problem", silent.Addr().String() + " for the cluster: no answer in time"})
	if err := silent.Close(); err != nil {
		t.Fatal(err)
	}
	wantFindings(t, checkOf(t.Context(), t, silent.Addr().String(), "events"), [3]string{"broker", "problem", "refused; start the broker"})
}

func TestTopicsThatEventsName(t *testing.T) {
	topics := []kafka.Topic{{Name: "q-b"}, {Name: "q-a"}, {Name: "other"}, {Name: "q-internal", Internal: true}}
	wantFindings(t, []sinks.Finding{matching("q-*", topics), matching("p-*", topics)},
		[3]string{"topic", "unknown", "like q-* there are q-a, q-b; an event whose topic is missing waits, and its query with it;"},
		[3]string{"topic", "problem", "there is no topic like p-*; create"})
	for _, name := range []string{"q-c", "q-d", "q-e", "q-f", "q-g"} {
		topics = append(topics, kafka.Topic{Name: name})
	}
	wantFindings(t, []sinks.Finding{matching("q-*", topics)}, [3]string{"topic", "unknown", "q-a, q-b, q-c, q-d, q-e and 2 more;"})
}

// A file that is missing is no broker that is: the next step is the file, and the next
// connection has it.
func TestFileThatIsMissing(t *testing.T) {
	broker, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	missing := filepath.Join(t.TempDir(), "ca.pem")
	cfg := Config{Brokers: []string{broker.Addr().String()}, Topic: "events", TLS: sinks.TLS{CAFile: missing}}
	if err := cfg.CheckFiles(); err == nil || !strings.HasPrefix(err.Error(), "tls.ca_file: "+missing+": there is no such file") {
		t.Errorf("checked beforehand: %v", err)
	}
	sink, err := New(cfg, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	found := sink.Check(t.Context(), []string{"etl"})
	wantFindings(t, found, [3]string{"broker", "problem", "tls.ca_file: " + missing + ": there is no such file; put it there, or correct the path"})
	if strings.Contains(found[0].Problem.Error(), "start the broker") {
		t.Errorf("another next step than the file: %v", found[0].Problem)
	}
	if _, err := sink.Deliver(t.Context(), []listener.Event{progress("q", 0)}); err == nil || sinks.IsPermanent(err) || !strings.Contains(err.Error(), "tls.ca_file: "+missing) {
		t.Errorf("delivered: %v", err)
	}
}
