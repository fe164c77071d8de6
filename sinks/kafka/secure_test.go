//go:build integration

package kafka

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"sparkbridge/integration/servers"
	"sparkbridge/listener"
	"sparkbridge/sinks"
	"sparkbridge/sinks/sinktest"
)

// secureBroker is a real broker with a listener for each kind of security.
type secureBroker struct {
	*servers.Kafka
	authority                      *sinktest.Authority
	plain, sasl, mutual, saslByTLS string // addresses
}

const jaas = "org.apache.kafka.common.security."

func startSecureBroker(t *testing.T) secureBroker {
	t.Helper()
	b := secureBroker{authority: sinktest.NewAuthority(t)}
	ports := make([]int, 5)
	for i := range ports {
		var err error
		if ports[i], err = servers.FreePort(); err != nil {
			t.Fatal(err)
		}
	}
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	b.plain, b.sasl, b.mutual, b.saslByTLS = at(0), at(1), at(2), at(3)
	listeners := "PLAINTEXT://" + b.plain + ",SASL://" + b.sasl + ",SSL://" + b.mutual + ",SASLSSL://" + b.saslByTLS
	conf := map[string]string{
		"listeners": listeners + ",CONTROLLER://" + at(4), "advertised.listeners": listeners, "controller.quorum.voters": "1@" + at(4),
		"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,SSL:SSL,SASLSSL:SASL_SSL",
		"inter.broker.listener.name":     "PLAINTEXT",
		"ssl.keystore.type":              "PEM", "ssl.keystore.location": keystore(t, b.authority),
		"ssl.truststore.type": "PEM", "ssl.truststore.location": b.authority.File,
		"listener.name.ssl.ssl.client.auth":          "required",
		"sasl.enabled.mechanisms":                    "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
		"listener.name.sasl.sasl.enabled.mechanisms": "SCRAM-SHA-256",
	}
	for _, name := range []string{"sasl", "saslssl"} {
		conf["listener.name."+name+".plain.sasl.jaas.config"] = jaas + `plain.PlainLoginModule required user_bridge="s3cret";`
		conf["listener.name."+name+".scram-sha-256.sasl.jaas.config"] = jaas + "scram.ScramLoginModule required;"
		conf["listener.name."+name+".scram-sha-512.sasl.jaas.config"] = jaas + "scram.ScramLoginModule required;"
	}
	var err error
	b.Kafka, err = servers.StartKafka(t.Context(), servers.KafkaOptions{Dir: t.TempDir(), Port: ports[0], Conf: conf,
		Scram: []string{"SCRAM-SHA-256=[name=bridge,password=s3cret]", "SCRAM-SHA-512=[name=bridge,password=s3cret]"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Kill)
	return b
}

// keystore is the key and certificate of the broker in one file.
func keystore(t *testing.T, authority *sinktest.Authority) string {
	t.Helper()
	certFile, keyFile := authority.Issue(t, "broker.test")
	var all []byte
	for _, name := range []string{keyFile, certFile} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	file := filepath.Join(t.TempDir(), "keystore.pem")
	if err := os.WriteFile(file, all, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// delivers writes an event, and returns what Check says of the broker too.
func delivers(t *testing.T, cfg Config) (delivery, check error) {
	t.Helper()
	cfg.Topic = "events"
	sink, err := newSink(cfg, "test", slog.New(slog.DiscardHandler), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	acked, err := sink.Deliver(t.Context(), []listener.Event{{Sequence: 1, ID: "q:progress:0", Kind: listener.Progress, QueryID: "q", Source: "etl", Payload: []byte(`{}`)}})
	if (err == nil) != (acked == 1) {
		t.Errorf("%d acknowledged with %v", acked, err)
	}
	return err, sink.Check(t.Context(), []string{"etl"})[0].Problem
}

func TestSecurity(t *testing.T) {
	b := startSecureBroker(t)
	if err := b.CreateTopic(t.Context(), "events", 1); err != nil {
		t.Fatal(err)
	}
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
	for name, c := range map[string]struct {
		at   string
		tls  sinks.TLS
		sasl SASL
		want string // empty: it works
	}{
		"plain":                     {b.saslByTLS, trusting, user("plain"), ""},
		"scram 256":                 {b.saslByTLS, named, user("scram-sha-256"), ""},
		"scram 512":                 {b.saslByTLS, trusting, user("scram-sha-512"), ""},
		"without TLS":               {b.sasl, sinks.TLS{}, user("scram-sha-256"), ""},
		"own certificate":           {b.mutual, client, SASL{}, ""},
		"wrong password, plain":     {b.saslByTLS, trusting, wrong("plain"), "correct sasl.username and sasl.password"},
		"wrong password, scram 512": {b.saslByTLS, trusting, wrong("scram-sha-512"), "correct sasl.username and sasl.password"},
		"other mechanism":           {b.sasl, sinks.TLS{}, user("plain"), "set sasl.mechanism to one that this listener"},
		"nobody":                    {b.saslByTLS, trusting, SASL{}, "take its SSL listener, or set sasl"},
		"nobody without TLS":        {b.sasl, sinks.TLS{}, SASL{}, "take its PLAINTEXT listener, or set sasl"},
		"user without TLS":          {b.saslByTLS, sinks.TLS{}, user("plain"), "set tls"},
		"plain text to TLS":         {b.mutual, sinks.TLS{}, SASL{}, "set tls"},
		"TLS to plain text":         {b.plain, trusting, SASL{}, "take its SSL listener"},
		"unknown authority":         {b.saslByTLS, sinks.TLS{Enabled: true}, user("plain"), "set tls.ca_file"},
		"other name":                {b.saslByTLS, misnamed, user("plain"), "tls.server_name"},
		"no certificate":            {b.mutual, trusting, SASL{}, "set tls.cert_file and tls.key_file"},
		"foreign certificate":       {b.mutual, foreign, SASL{}, "set tls.cert_file and tls.key_file"},
		"no file":                   {b.mutual, sinks.TLS{CAFile: "/nowhere"}, SASL{}, "tls.ca_file: open /nowhere"},
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
	t.Run("ambiguous", func(t *testing.T) { testCountsAmbiguous(t, b) })
	t.Run("topic on request", func(t *testing.T) { testTopicOnRequest(t, b.plain) })
}

func testTopicOnRequest(t *testing.T, broker string) {
	cfg := Config{Brokers: []string{broker}, Topic: "made-{source}", CreateTopic: CreateTopic{Partitions: 3}}
	sink, err := newSink(cfg, "test", slog.New(slog.DiscardHandler), 5*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	wantFindings(t, sink.Check(t.Context(), []string{"etl"}), [3]string{"broker", "ok", ""}, [3]string{"topic", "unknown", "made-etl is not there yet; it is made at the first event, with 3 partitions"})
	var events []listener.Event
	for i := range 20 {
		events = append(events, listener.Event{Sequence: uint64(i + 1), ID: fmt.Sprintf("q:progress:%d", i), Kind: listener.Progress, QueryID: "q", Source: []string{"etl", "other"}[i%2], Payload: []byte(`{}`)})
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
func testCountsAmbiguous(t *testing.T, b secureBroker) {
	sink, err := newSink(Config{Brokers: []string{b.plain}, Topic: "events"}, "test", slog.New(slog.DiscardHandler), 2*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	event := listener.Event{Sequence: 1, ID: "q:progress:0", Kind: listener.Progress, QueryID: "q", Source: "etl", Payload: []byte(`{}`)}
	if acked, err := sink.Deliver(t.Context(), []listener.Event{event}); acked != 1 || sink.State().Ambiguous != 0 {
		t.Fatalf("%d ambiguous, %v", sink.State().Ambiguous, err)
	}
	b.Pause()
	_, err = sink.Deliver(t.Context(), []listener.Event{event, event, event})
	b.Resume()
	if got := sink.State().Ambiguous; err == nil || got != 3 {
		t.Errorf("%d ambiguous after %v, want 3", got, err)
	}
}
