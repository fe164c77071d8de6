package nats

import (
	"context"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/sinks"
	"sparkbridge/sinks/sinktest"
)

const serverLimit = 1 << 20 // max_payload of a server that is not told otherwise

func TestConformanceJetStream(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Harness {
		s := startServer(t, nil)
		s.addStream(t, nil)
		h := s.harness(Config{URL: s.url(), JetStream: true})
		h.Stop, h.Start = s.stop, s.start
		h.Received = func(ctx context.Context) ([]sinktest.Message, error) {
			all, err := s.stored(ctx, t)
			got := make([]sinktest.Message, len(all))
			for i, msg := range all {
				got[i] = received(t, msg.Headers(), msg.Data())
			}
			return got, err
		}
		return h
	})
}

// The subscriber stays connected while the sink's connections break: so all that
// was acknowledged must reach it, in plain NATS too.
func TestConformanceCore(t *testing.T) {
	sinktest.Run(t, func(t *testing.T) sinktest.Harness {
		s := startServer(t, nil)
		var mu sync.Mutex
		var got []sinktest.Message
		sub, err := s.client(t).Subscribe("spark.>", func(msg *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, received(t, msg.Header, msg.Data))
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := sub.SetPendingLimits(-1, -1); err != nil {
			t.Fatal(err)
		}
		h := s.harness(Config{URL: s.url()})
		h.Stop, h.Start = s.proxy.Stop, s.proxy.Start
		h.Received = func(context.Context) ([]sinktest.Message, error) {
			mu.Lock()
			defer mu.Unlock()
			return append([]sinktest.Message(nil), got...), nil
		}
		return h
	})
}

func (s *testServer) harness(cfg Config) sinktest.Harness {
	return sinktest.Harness{
		New:    func(t testing.TB) sinks.Sink { return newSink(t, cfg) },
		Freeze: s.proxy.Freeze, Thaw: s.proxy.Thaw, Slow: s.proxy.Slow,
		Limit: serverLimit,
	}
}

// received takes a message apart, header values decoded.
func received(t testing.TB, header nats.Header, data []byte) sinktest.Message {
	m := sinktest.Message{Attributes: map[string]string{}, ContentType: header.Get("content-type"), Payload: data}
	for name, values := range header {
		value, err := url.PathUnescape(values[0])
		if err != nil {
			t.Errorf("header %s: %v", name, err)
		}
		switch attribute, found := strings.CutPrefix(name, "ce-"); {
		case found:
			m.Attributes[attribute] = value
		case name == jetstream.MsgIDHeader:
			m.IDs = append(m.IDs, value)
		}
	}
	m.PartitionKey = m.Attributes["partitionkey"]
	return m
}
