package nats

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// testServer is a real nats-server in this process behind a relay that can
// freeze it. It keeps its address and its store over stop and start.
type testServer struct {
	options server.Options
	running *server.Server
	relay   *relay
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
	s.relay = newRelay(t, addr.String())
	t.Cleanup(func() {
		s.relay.stop()
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

func (s *testServer) stop(testing.TB) {
	s.relay.stop()
	s.running.Shutdown()
	s.running.WaitForShutdown()
}

func (s *testServer) start(t testing.TB) {
	t.Helper()
	s.startNATS(t)
	s.relay.listen(t)
}

func (s *testServer) url() string { return "nats://" + s.relay.addr }

// client returns a connection past the relay.
func (s *testServer) client(t testing.TB) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect("", append(s.login, nats.InProcessServer(s.running), nats.NoReconnect())...)
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

func (s *testServer) bridgeURL() string { return "nats://bridge:pw@" + s.relay.addr }

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

// relay passes bytes between clients and a server. While frozen it accepts
// connections and passes nothing.
type relay struct {
	addr, target string

	mu       sync.Mutex
	passing  sync.Cond // of mu: not frozen, or stopped
	frozen   bool
	listener net.Listener
	conns    map[net.Conn]bool
	running  sync.WaitGroup
}

func newRelay(t testing.TB, target string) *relay {
	r := &relay{addr: "127.0.0.1:0", target: target, conns: make(map[net.Conn]bool)}
	r.passing.L = &r.mu
	r.listen(t)
	return r
}

func (r *relay) listen(t testing.TB) {
	t.Helper()
	listener, err := net.Listen("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	r.listener, r.addr = listener, listener.Addr().String()
	r.mu.Unlock()
	r.running.Go(func() { r.accept(listener) })
}

func (r *relay) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", r.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		r.mu.Lock()
		r.conns[client], r.conns[server] = true, true
		r.mu.Unlock()
		r.running.Go(func() { r.pass(client, server) })
		r.running.Go(func() { r.pass(server, client) })
	}
}

func (r *relay) pass(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	chunk := make([]byte, 64<<10)
	for {
		n, err := from.Read(chunk)
		r.mu.Lock()
		for r.frozen && r.conns[from] {
			r.passing.Wait()
		}
		r.mu.Unlock()
		if _, writeErr := to.Write(chunk[:n]); errors.Join(err, writeErr) != nil {
			return
		}
	}
}

func (r *relay) freeze(frozen bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = frozen
	r.passing.Broadcast()
}

// stop cuts all connections and refuses new ones until listen.
func (r *relay) stop() {
	r.mu.Lock()
	_ = r.listener.Close()
	for conn := range r.conns {
		_ = conn.Close()
	}
	clear(r.conns)
	r.passing.Broadcast()
	r.mu.Unlock()
	r.running.Wait()
}
