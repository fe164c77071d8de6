package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"sparkbridge/listener"
)

// progress makes progress event n of a query.
func progress(query string, n int) listener.Event {
	return listener.Event{
		Sequence: uint64(n + 1), ID: fmt.Sprintf("run-%s:progress:%d", query, n), Kind: listener.KindProgress,
		Origin: listener.OriginBus, Source: "etl", QueryID: "id-" + query, RunID: "run-" + query, Name: query,
		BatchID: int64(n), Time: time.UnixMilli(1_700_000_000_000 + int64(n)).UTC(),
		Payload: fmt.Appendf(nil, `{"batchId":%d,"name":%q}`, n, query),
	}
}

// The hashes are those of the Java client's own tests of murmur2.
func TestPartitionsAsJavaDoes(t *testing.T) {
	for key, hash := range map[string]int32{
		"21":                         -973932308,
		"foobar":                     -790332482,
		"a-little-bit-long-string":   -985981536,
		"a-little-bit-longer-string": -1486304829,
		"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
		"abc": 479470107,
	} {
		for _, n := range []int{1, 2, 3, 7, 50, 1000} {
			partitions := make([]int, n)
			for i := range partitions {
				partitions[i] = i
			}
			want := int(hash&0x7fffffff) % n
			if got := javaPartitioner.Balance(kafka.Message{Key: []byte(key)}, partitions...); got != want {
				t.Errorf("%q goes to partition %d of %d, want %d", key, got, n, want)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	for name, test := range map[string]struct {
		cfg  Config
		want []string // parts of the error; none: valid
	}{
		"defaults":      {Config{Brokers: []string{"localhost:9092"}, Topic: "spark-query-events"}, nil},
		"template":      {Config{Brokers: []string{"a:1", "[::1]:9092"}, Topic: "spark.{source}.{query_id}"}, nil},
		"no brokers":    {Config{Brokers: nil, Topic: "t"}, []string{"brokers: is missing", "localhost:9092"}},
		"no port":       {Config{Brokers: []string{"a:1", "b"}, Topic: "t"}, []string{`brokers[1]: "b"`, "host:port"}},
		"bad port":      {Config{Brokers: []string{"a:http"}, Topic: "t"}, []string{`brokers[0]: "a:http"`, "9092"}},
		"url":           {Config{Brokers: []string{"kafka://a:1"}, Topic: "t"}, []string{"brokers[0]", "host:port"}},
		"unknown name":  {Config{Brokers: []string{"a:1"}, Topic: "t-{job}"}, []string{"topic:", "{job}"}},
		"illegal topic": {Config{Brokers: []string{"a:1"}, Topic: "events/{kind}"}, []string{"topic:", "events/{kind}", "249"}},
		"no topic":      {Config{Brokers: []string{"a:1"}, Topic: ""}, []string{"topic:"}},
		"all at once":   {Config{Brokers: []string{"b"}, Topic: "?"}, []string{"brokers[0]", "topic:"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.cfg.Validate()
			if (err != nil) != (test.want != nil) {
				t.Fatalf("err %v", err)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not contain %q", err, part)
				}
			}
		})
	}
}

func unreachable(t *testing.T, topic string) (*Sink, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
	sink, err := New(Config{Brokers: []string{addr}, Topic: topic}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sink.Close() })
	return sink, addr
}

func TestBrokerDownIsAnErrorOfDeliver(t *testing.T) {
	sink, addr := unreachable(t, "events")
	acked, err := sink.Deliver(t.Context(), []listener.Event{progress("a", 0)})
	if acked != 0 || err == nil || !strings.Contains(err.Error(), addr) || !strings.Contains(err.Error(), "refused") {
		t.Fatalf("acked %d, err %v, want one that says what and where", acked, err)
	}
}

// A listener for TLS answers a plaintext request with an alert, one for SASL
// closes the connection; both must be told from a broker that is down.
func TestListenerForTLSOrSASL(t *testing.T) {
	for name, answer := range map[string][]byte{
		"TLS":  {0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46},
		"SASL": nil,
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var serving sync.WaitGroup
			serving.Go(func() {
				for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
					_, _ = conn.Read(make([]byte, 1024))
					_, _ = conn.Write(answer)
					_ = conn.Close()
				}
			})
			defer serving.Wait()
			defer l.Close()
			sink, err := New(Config{Brokers: []string{l.Addr().String()}, Topic: "events"}, "test", slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			defer sink.Close()
			_, err = sink.Deliver(t.Context(), []listener.Event{progress("a", 0)})
			if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "PLAINTEXT listener") {
				t.Errorf("err %v", err)
			}
		})
	}
}

// A broker that accepts and says nothing must hold up neither the caller nor Close.
func TestMuteBroker(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sink, err := New(Config{Brokers: []string{l.Addr().String()}, Topic: "events"}, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	sink.limits.set("events", 1000) // so that the writer is what hangs
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := sink.Deliver(ctx, []listener.Event{progress("a", 0)}); !errors.Is(err, context.Canceled) {
		t.Fatalf("err %v, want the context's", err)
	}
	if sink.left == nil {
		t.Error("the write is not remembered")
	}
	for range 2 {
		if err := sink.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

func TestRoundFitsTheTopicsLimits(t *testing.T) {
	sink, _ := unreachable(t, "spark-{query}")
	msg, err := (&form{}).message(new(progress("a", 0)), "spark-a", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	size := recordSize(&msg)
	sink.limits.set("spark-a", 2*size+10)
	sink.limits.set("spark-b", 100*size)
	var events []listener.Event
	for _, query := range strings.Split("abbabba", "") {
		events = append(events, progress(query, 0))
	}
	round, err := sink.round(t.Context(), events)
	if err != nil || len(round) != 6 { // the third of a is too much
		t.Fatalf("%d messages, err %v", len(round), err)
	}
	events[0].Payload = []byte(`{"text":"` + strings.Repeat("x", 10*size) + `"}`)
	round, err = sink.round(t.Context(), events)
	if err != nil || len(round) != 3 { // a full one leaves no room for the next of its topic
		t.Fatalf("%d messages, err %v", len(round), err)
	}
	if got := recordSize(&round[0]); got > 2*size+10 {
		t.Errorf("cut to %d bytes, the limit is %d", got, 2*size+10)
	}
}
