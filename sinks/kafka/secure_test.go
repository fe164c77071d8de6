//go:build integration

package kafka

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"sparkbridge/listener"
	"sparkbridge/sinks"
	"sparkbridge/sinks/sinktest"
)

// delivers writes an event, and returns what Check says of the broker too.
func delivers(t *testing.T, cfg Config) (delivery, check error) {
	t.Helper()
	cfg.Topic = "events"
	sink, err := newSink(cfg, "test", slog.New(slog.DiscardHandler), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	acked, err := sink.Deliver(t.Context(), []listener.Event{{Sequence: 1, ID: "q:progress:0", Kind: listener.KindProgress, QueryID: "q", Source: "etl", Payload: []byte(`{}`)}})
	if (err == nil) != (acked == 1) {
		t.Errorf("%d acknowledged with %v", acked, err)
	}
	return err, sink.Check(t.Context(), []string{"etl"})[0].Problem
}

func testSecurity(t *testing.T, b testBroker) {
	createTopic(t, b, "events", 1)
	trusting := sinks.TLS{CAFile: b.authority.File}
	client := b.authority.Client(t, "bridge")
	named, misnamed := trusting, trusting
	named.ServerName, misnamed.ServerName = "broker.test", "other.test"
	user := func(mechanism string) SASL { return SASL{Mechanism: mechanism, Username: "bridge", Password: "s3cret"} }
	wrong := func(mechanism string) SASL {
		return SASL{Mechanism: mechanism, Username: "bridge", Password: "hunter2"}
	}
	foreign := sinktest.NewAuthority(t).Client(t, "bridge")
	foreign.CAFile = b.authority.File
	plaintext, sasl, secured, mutual, saslByTLS := b.at("PLAINTEXT"), b.at("SASL"), b.at("TLS"), b.at("MUTUAL"), b.at("SASLTLS")
	for name, c := range map[string]struct {
		at   string
		tls  sinks.TLS
		sasl SASL
		want string // empty: it works
	}{
		"plain":                     {saslByTLS, trusting, user("plain"), ""},
		"scram 256":                 {saslByTLS, named, user("scram-sha-256"), ""},
		"scram 512":                 {saslByTLS, trusting, user("scram-sha-512"), ""},
		"without TLS":               {sasl, sinks.TLS{}, user("scram-sha-256"), ""},
		"TLS alone":                 {secured, trusting, SASL{}, ""},
		"own certificate":           {mutual, client, SASL{}, ""},
		"wrong password, plain":     {saslByTLS, trusting, wrong("plain"), "correct sasl.username and sasl.password"},
		"wrong password, scram 512": {saslByTLS, trusting, wrong("scram-sha-512"), "correct sasl.username and sasl.password"},
		"other mechanism":           {sasl, sinks.TLS{}, user("plain"), "set sasl.mechanism to one that this listener"},
		"nobody":                    {saslByTLS, trusting, SASL{}, "take its SSL listener, or set sasl"},
		"nobody without TLS":        {sasl, sinks.TLS{}, SASL{}, "take its PLAINTEXT listener, or set sasl"},
		"user without TLS":          {saslByTLS, sinks.TLS{}, user("plain"), "set tls"},
		"plain text to TLS":         {mutual, sinks.TLS{}, SASL{}, "set tls"},
		"TLS to plain text":         {plaintext, trusting, SASL{}, "take its SSL listener"},
		"unknown authority":         {saslByTLS, sinks.TLS{Enabled: true}, user("plain"), "set tls.ca_file"},
		"other name":                {saslByTLS, misnamed, user("plain"), "tls.server_name"},
		"no certificate":            {mutual, trusting, SASL{}, "set tls.cert_file and tls.key_file"},
		"foreign certificate":       {mutual, foreign, SASL{}, "set tls.cert_file and tls.key_file"},
		"no file":                   {mutual, sinks.TLS{CAFile: "/nowhere"}, SASL{}, "tls.ca_file: /nowhere: there is no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			delivery, check := delivers(t, Config{Brokers: []string{c.at}, TLS: c.tls, SASL: c.sasl})
			for what, err := range map[string]error{"delivery": delivery, "check": check} {
				t.Logf("%s: %v", what, err)
				switch {
				case (err == nil) != (c.want == ""):
					t.Errorf("%s: %v", what, err)
				case err == nil:
				case !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n"):
					t.Errorf("%s: %v\nwant: %s", what, err, c.want)
				}
				if denied := strings.Contains(c.want, "sasl.username and") || strings.Contains(c.want, "mechanism"); errors.Is(err, sinks.ErrDenied) != denied {
					t.Errorf("%s: denied: %v", what, !denied)
				}
			}
		})
	}
}

func testTopicOnRequest(t *testing.T, b testBroker) {
	broker := b.at("PLAINTEXT")
	cfg := Config{Brokers: []string{broker}, Topic: "made-{source}", CreateTopic: CreateTopic{Partitions: 3}}
	sink, err := newSink(cfg, "test", slog.New(slog.DiscardHandler), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	wantFindings(t, sink.Check(t.Context(), []string{"etl"}), [3]string{"broker", "ok", ""}, [3]string{"topic", "unknown", "made-etl is not there yet; it is made at the first event, with 3 partitions"})
	var events []listener.Event
	for i := range 20 {
		events = append(events, listener.Event{Sequence: uint64(i + 1), ID: fmt.Sprintf("q:progress:%d", i), Kind: listener.KindProgress, QueryID: "q", Source: []string{"etl", "other"}[i%2], Payload: []byte(`{}`)})
	}
	deliverAll(t, sink, events, func(int) {})
	client := &kafka.Client{Addr: kafka.TCP(broker), Transport: &kafka.Transport{}}
	defer client.Transport.(*kafka.Transport).CloseIdleConnections()
	answer, err := client.Metadata(t.Context(), &kafka.MetadataRequest{Topics: []string{"made-etl", "made-other"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, topic := range answer.Topics {
		if topic.Error != nil || len(topic.Partitions) != 3 {
			t.Errorf("%s has %d partitions, %v", topic.Name, len(topic.Partitions), topic.Error)
		}
	}
	cfg.Topic, cfg.CreateTopic.ReplicationFactor = "too-safe", 3
	safe, err := newSink(cfg, "test", slog.New(slog.DiscardHandler), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer safe.Close()
	if _, err := safe.Deliver(t.Context(), events[:1]); err == nil || !strings.Contains(err.Error(), "create the topic") || !strings.Contains(err.Error(), "set create_topic.replication_factor") {
		t.Errorf("error %v", err)
	}
}

// A broker that does not answer leaves open what became of what was sent; one that
// is not there does not.
func testCountsAmbiguous(t *testing.T, b testBroker) {
	createTopic(t, b, "doubtful", 1)
	sink := openSink(t, b, "doubtful")
	event := listener.Event{Sequence: 1, ID: "q:progress:0", Kind: listener.KindProgress, QueryID: "q", Source: "etl", Payload: []byte(`{}`)}
	if acked, err := sink.Deliver(t.Context(), []listener.Event{event}); acked != 1 || sink.State().Ambiguous != 0 {
		t.Fatalf("%d ambiguous, %v", sink.State().Ambiguous, err)
	}
	b.Pause()
	_, err := sink.Deliver(t.Context(), []listener.Event{event, event, event})
	b.Resume()
	if got := sink.State().Ambiguous; err == nil || got != 3 {
		t.Errorf("%d ambiguous after %v, want 3", got, err)
	}
}
