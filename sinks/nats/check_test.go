package nats

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/sinks"
)

func checked(t *testing.T, cfg Config) []sinks.Finding {
	t.Helper()
	return newSink(t, cfg).Check(t.Context(), []string{"etl", "billing"})
}

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

func TestCheckFindsTheStreams(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.MaxPayload = 123_456 })
	js := Config{URL: s.url(), JetStream: true}
	wantFindings(t, checked(t, js), [3]string{"server", "ok", "123456 bytes"},
		[3]string{"stream", "problem", "no stream takes spark.etl.*.*; create one, such as: nats stream add spark --subjects 'spark.>'"},
		[3]string{"stream", "problem", "spark.billing.*.*"})

	s.addStream(t, func(c *jetstream.StreamConfig) {
		c.Subjects = []string{"other", "spark.etl.>", "spark.billing.*.progress"}
	})
	wantFindings(t, checked(t, js), [3]string{"server", "ok", ""},
		[3]string{"stream", "ok", "spark takes spark.etl.*.*"},
		[3]string{"stream", "unknown", "of spark.billing.*.* only parts are taken, by spark (other, spark.etl.>, spark.billing.*.progress); an event that none takes waits, and its query with it"})
	if stored, err := s.stored(t.Context(), t); err != nil || len(stored) > 0 {
		t.Errorf("the check has published: %d messages, %v", len(stored), err)
	}

	plain := Config{URL: s.url()}
	wantFindings(t, checked(t, plain), [3]string{"server", "ok", ""}, [3]string{"subject", "ok", "spark.etl.*.*, spark.billing.*.* (jetstream: false)"})
	fixed := Config{URL: s.url(), JetStream: true, Subject: "other"}
	wantFindings(t, checked(t, fixed), [3]string{"server", "ok", ""}, [3]string{"stream", "ok", "spark takes other"})
}

func TestCheckWithoutJetStream(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.JetStream = false })
	wantFindings(t, checked(t, Config{URL: s.url(), JetStream: true}),
		[3]string{"server", "ok", ""}, [3]string{"stream", "problem", "no JetStream"})
}

func TestCheckWhereQuestionsAreForbidden(t *testing.T) {
	s := startServer(t, nil)
	s.restrict(t, &server.SubjectPermission{Allow: []string{"spark.>"}})
	wantFindings(t, checked(t, Config{URL: s.bridgeURL(), JetStream: true}),
		[3]string{"server", "ok", ""}, [3]string{"stream", "unknown", "does not tell"})
}

func TestCheckOfAServerThatDoesNotLetUsIn(t *testing.T) {
	s := startServer(t, nil)
	s.restrict(t, nil)
	cfg := Config{URL: strings.Replace(s.bridgeURL(), "bridge:pw@", "bridge:wrong@", 1), JetStream: true}
	found := checked(t, cfg)
	wantFindings(t, found, [3]string{"server", "problem", "set the user and password"})
	if !errors.Is(found[0].Problem, sinks.ErrDenied) || strings.Contains(found[0].Problem.Error(), "wrong") {
		t.Errorf("problem %v", found[0].Problem)
	}
	s.stop(t)
	wantFindings(t, checked(t, cfg), [3]string{"server", "problem", "refused; start the server"})
}

// A server that accepts and says nothing holds a check up no longer than it is given.
func TestCheckEndsInTime(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	found := newSink(t, Config{URL: "nats://" + silent.Addr().String(), JetStream: true}).Check(ctx, []string{"etl"})
	wantFindings(t, found, [3]string{"server", "problem", "no answer in time"})
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestCovers(t *testing.T) {
	for _, c := range []struct {
		pattern, subject string
		want             bool
	}{
		{"spark.>", "spark.etl.*.*", true},
		{">", "spark", true},
		{"spark.*.*.*", "spark.etl.*.*", true},
		{"spark.etl.*.*", "spark.etl.*.*", true},
		{"a", "a", true},
		{"spark.>", "spark", false},
		{"spark.etl.*", "spark.etl.*.*", false},
		{"spark.etl.*.*.*", "spark.etl.*.*", false},
		{"spark.etl.orders.*", "spark.etl.*.*", false},
		{"spark.etl.orders.>", "spark.etl.*.*", false},
		{"a", "b", false},
	} {
		if got := covers(c.pattern, c.subject); got != c.want {
			t.Errorf("covers(%q, %q) = %v", c.pattern, c.subject, got)
		}
	}
}

// What stands alone before the @ is a token.
func TestCheckShowsNoToken(t *testing.T) {
	s := startServer(t, func(o *server.Options) { o.Authorization = "s3cret" })
	address := strings.Replace(s.url(), "://", "://s3cret@", 1)
	found := checked(t, Config{URL: address})
	if len(found) == 0 || found[0].Problem != nil || strings.Contains(found[0].Text, "s3cret") {
		t.Errorf("got %+v, want an answer that does not show the token", found)
	}
}
