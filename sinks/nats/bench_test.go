package nats

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/listener"
)

func BenchmarkDeliver(b *testing.B) {
	for name, test := range map[string]struct {
		js     bool
		change func(*jetstream.StreamConfig)
	}{
		"core":                   {},
		"stream":                 {js: true},
		"stream that may refuse": {js: true, change: func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardNew }},
	} {
		b.Run(name, func(b *testing.B) {
			s := startServer(b, nil)
			s.addStream(b, test.change)
			sink := newSink(b, Config{URL: s.url(), JetStream: test.js})
			events := make([]listener.Event, 512)
			for n := 0; b.Loop(); {
				for i := range events {
					events[i] = progress("a", n)
					events[i].Payload = make([]byte, 1500)
					n++
				}
				if _, err := sink.Deliver(b.Context(), events); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*len(events))/b.Elapsed().Seconds(), "events/s")
		})
	}
}
