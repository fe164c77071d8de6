package nats

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
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
			return messages(t, all), err
		}
		return h
	})
}

// The subscriber stays connected while the sink's connections break: so all that
// was acknowledged must reach it, in plain NATS too.
func TestConformanceCore(t *testing.T) {
	ours := sinktest.NewAuthority(t)
	sinktest.Run(t, func(t *testing.T) sinktest.Harness {
		s := startServer(t, func(o *server.Options) {
			o.TLS, o.TLSConfig, o.TLSTimeout = true, ours.Server(t, "nats.test"), 60
			o.Username, o.Password, o.AuthTimeout = "bridge", "s3cret", 60
		})
		s.login = []nats.Option{nats.UserInfo("bridge", "s3cret")}
		var mu sync.Mutex
		var got []sinktest.Message
		client := s.client(t)
		sub, err := client.Subscribe("spark.>", func(msg *nats.Msg) {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, received(t, msg.Header, msg.Data))
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(sub.SetPendingLimits(-1, -1), client.Flush()); err != nil {
			t.Fatal(err)
		}
		h := s.harness(Config{URL: s.url(), User: "bridge", Password: "s3cret", TLS: sinks.TLS{CAFile: ours.File}})
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

func messages(t testing.TB, stored []jetstream.Msg) []sinktest.Message {
	got := make([]sinktest.Message, len(stored))
	for i, msg := range stored {
		got[i] = received(t, msg.Headers(), msg.Data())
	}
	return got
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
