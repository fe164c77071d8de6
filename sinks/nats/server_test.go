package nats

import (
	"context"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"sparkbridge/sinks/sinktest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// testServer is a real nats-server in this process behind a proxy that can
// freeze it. It keeps its address and its store over stop and start.
type testServer struct {
	options server.Options
	running *server.Server
	proxy   *sinktest.Proxy
	login   []nats.Option // of the test's own clients
}

// startServer starts a server with JetStream; configure may be nil.
func startServer(t testing.TB, configure func(*server.Options)) *testServer {
	t.Helper()
	s := &testServer{options: server.Options{
		Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir(),
	}}
	if configure != nil {
		configure(&s.options)
	}
	s.startNATS(t)
	addr := s.running.Addr().(*net.TCPAddr)
	s.options.Port = addr.Port
	s.proxy = sinktest.NewProxy(t, addr.String())
	t.Cleanup(func() {
		s.running.Shutdown()
		s.running.WaitForShutdown()
	})
	return s
}

func (s *testServer) startNATS(t testing.TB) {
	t.Helper()
	options := s.options // the server changes what it is given
	running, err := server.NewServer(&options)
	if err != nil {
		t.Fatal(err)
	}
	running.Start()
	if !running.ReadyForConnections(30 * time.Second) {
		t.Fatal("nats-server did not start")
	}
	s.running = running
}

func (s *testServer) stop(t testing.TB) {
	s.proxy.Stop(t)
	s.running.Shutdown()
	s.running.WaitForShutdown()
}

func (s *testServer) start(t testing.TB) {
	t.Helper()
	s.startNATS(t)
	s.proxy.Start(t)
}

func (s *testServer) url() string { return "nats://" + s.proxy.Addr() }

// client returns a connection past the relay.
func (s *testServer) client(t testing.TB) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect("", append(s.login, nats.InProcessServer(s.running), nats.NoReconnect(), nats.Timeout(time.Minute))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

func (s *testServer) jetstream(t testing.TB) jetstream.JetStream {
	t.Helper()
	js, err := jetstream.New(s.client(t))
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// restrict restarts the server with two users: admin may do everything, bridge
// may publish as told.
func (s *testServer) restrict(t testing.TB, publish *server.SubjectPermission) {
	t.Helper()
	s.stop(t)
	s.options.Users = []*server.User{
		{Username: "admin", Password: "pw"},
		{Username: "bridge", Password: "pw", Permissions: &server.Permissions{Publish: publish}},
	}
	s.login = []nats.Option{nats.UserInfo("admin", "pw")}
	s.start(t)
}

func (s *testServer) bridgeURL() string { return "nats://bridge:pw@" + s.proxy.Addr() }

// addStream makes the stream that takes all subjects of the default template.
func (s *testServer) addStream(t testing.TB, change func(*jetstream.StreamConfig)) {
	t.Helper()
	config := jetstream.StreamConfig{Name: "spark", Subjects: []string{"spark.>"}}
	if change != nil {
		change(&config)
	}
	if _, err := s.jetstream(t).CreateOrUpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

// stored returns the messages of the stream in their order.
func (s *testServer) stored(ctx context.Context, t testing.TB) ([]jetstream.Msg, error) {
	conn := s.client(t)
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	return readStream(ctx, js)
}

func readStream(ctx context.Context, js jetstream.JetStream) ([]jetstream.Msg, error) {
	stream, err := js.Stream(ctx, "spark")
	if err != nil {
		return nil, err
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, err
	}
	var all []jetstream.Msg
	for total := int(stream.CachedInfo().State.Msgs); len(all) < total; {
		batch, err := consumer.Fetch(total-len(all), jetstream.FetchMaxWait(10*time.Second))
		if err != nil {
			return nil, err
		}
		for msg := range batch.Messages() {
			all = append(all, msg)
		}
		if batch.Error() != nil {
			return nil, batch.Error()
		}
	}
	return all, nil
}

// newSink makes a sink with short time-outs that is closed with the test.
func newSink(t testing.TB, cfg Config) *Sink {
	t.Helper()
	if cfg.Subject == "" {
		cfg.Subject = "spark.{source}.{query}.{kind}"
	}
	sink, err := New(cfg, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	sink.ackTimeout = time.Second
	t.Cleanup(func() { _ = sink.Close() })
	return sink
}
