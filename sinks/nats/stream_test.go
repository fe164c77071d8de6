package nats

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// events makes n events of each query, mixed.
func events(n int, queries ...string) []listener.Event {
	var all []listener.Event
	for batch := range n {
		for _, query := range queries {
			all = append(all, progress(query, batch))
		}
	}
	return all
}

func creating(url string, stream Stream) Config {
	stream.Create = true
	if stream.Name == "" {
		stream.Name = "spark"
	}
	return Config{URL: url, JetStream: true, Stream: stream}
}

func TestStreamIsMadeOnRequest(t *testing.T) {
	s := startServer(t, nil)
	cfg := creating(s.url(), Stream{MaxAge: time.Hour})
	wantFindings(t, checked(t, cfg), [3]string{"server", "ok", ""},
		[3]string{"stream", "unknown", "no stream takes spark.etl.*.* yet; spark is made at the first event, for spark.>"}, [3]string{"stream", "unknown", "spark.billing.*.*"})
	if _, err := s.jetstream(t).Stream(t.Context(), "spark"); err == nil {
		t.Error("the check has made the stream")
	}
	sink := newSink(t, cfg)
	if acked, err := sink.Deliver(t.Context(), events(20, "a", "b")); acked != 40 || err != nil {
		t.Fatalf("%d, %v", acked, err)
	}
	stream, err := s.jetstream(t).Stream(t.Context(), "spark")
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	if !slices.Equal(config.Subjects, []string{"spark.>"}) || config.MaxAge != time.Hour || config.Replicas != 1 || config.Storage != jetstream.FileStorage || config.Discard != jetstream.DiscardOld {
		t.Errorf("made as %+v", config)
	}
	if stored, err := s.stored(t.Context(), t); len(stored) != 40 || err != nil {
		t.Errorf("%d stored, %v", len(stored), err)
	}
}

// What somebody has made is used as it is.
func TestStreamThatIsThereIsLeftAlone(t *testing.T) {
	s := startServer(t, nil)
	s.addStream(t, func(c *jetstream.StreamConfig) { c.MaxAge, c.Description = time.Minute, "theirs" })
	sink := newSink(t, creating(s.url(), Stream{MaxAge: time.Hour}))
	if acked, err := sink.Deliver(t.Context(), events(1, "a")); acked != 1 {
		t.Fatal(err)
	}
	stream, err := s.jetstream(t).Stream(t.Context(), "spark")
	if err != nil {
		t.Fatal(err)
	}
	if config := stream.CachedInfo().Config; config.MaxAge != time.Minute || config.Description != "theirs" {
		t.Errorf("changed to %+v", config)
	}
}

func TestStreamsThatCannotBeMade(t *testing.T) {
	s := startServer(t, nil)
	s.addStream(t, func(c *jetstream.StreamConfig) { c.Subjects = []string{"other.>", "sparkle.etl.x.>"} })
	for want, cfg := range map[string]Config{
		"a stream of this name is there and does not take the subject":            creating(s.url(), Stream{}),
		"nor would lake (events.>); add it to stream.subjects":                    creating(s.url(), Stream{Name: "lake", Subjects: []string{"events.>"}}),
		"subjects overlap with an existing stream":                                creating(s.url(), Stream{Name: "lake", Subjects: []string{"spark.>", "other.>"}}),
		"replicas > 1 not supported in non-clustered mode":                        creating(s.url(), Stream{Name: "lake", Replicas: 3}),
		"no stream takes this subject: nats: no response from stream; create one": {URL: s.url(), JetStream: true},
	} {
		acked, err := newSink(t, cfg).Deliver(t.Context(), events(2, "a"))
		if acked != 0 || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d acknowledged, %v\nwant %s", acked, err, want)
		}
	}
}

// A request that is forbidden gets no answer.
func TestStreamThatMayNotBeMade(t *testing.T) {
	s := startServer(t, nil)
	s.restrict(t, &server.SubjectPermission{Allow: []string{"spark.>"}})
	_, err := newSink(t, creating(s.bridgeURL(), Stream{})).Deliver(t.Context(), events(1, "a"))
	if err == nil || !strings.Contains(err.Error(), "$JS.API.STREAM.CREATE.spark") {
		t.Error(err)
	}
}

func TestSubjectsOfTheStream(t *testing.T) {
	for template, want := range map[string]string{
		"spark.{source}.{query}.{kind}": "spark.>", "events": "events", "a.b.{kind}.x": "a.b.>", "{source}.{kind}": "*.*", "x-{source}.y": "*.y",
	} {
		parsed, err := sinks.ParseTemplate(template)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Stream{Create: true}).over(parsed).Subjects; !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %s", template, got, want)
		}
	}
}
