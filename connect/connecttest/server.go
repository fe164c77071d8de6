// Package connecttest is a Spark Connect server for tests: sessions, reattachable
// operations and the listener bus behave as those of the real server do, and the
// faults that it has in production can be had when a test wants them.
//
// It knows no Spark: queries are what a test says they are, events are the JSON
// that a test emits. Everything else (who holds the bus, what may be read again,
// which error answers what) was measured on real servers; contract_test.go runs
// one suite against both, so that this stays true.
//
// The server lives in memory by default and takes its time from package time, so
// that hours of it pass in no time inside testing/synctest.
package connecttest

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"sparkbridge/connect/sparkpb"
)

// Version is a line of Spark releases whose server is played.
type Version string

// The lines of Spark that differ in what a client can see. Spark35 has no listener
// bus and no server-side session ids.
const (
	Spark42 Version = "4.2"
	Spark40 Version = "4.0"
	Spark35 Version = "3.5"
)

// Options are the settings of a server; the zero value is Spark 4.2 with its
// defaults, in memory, without a token.
type Options struct {
	Version Version
	// Token is demanded as `authorization: Bearer <token>`; empty: none is.
	Token string
	// Addr is a TCP address to listen on, such as 127.0.0.1:0; empty: in memory.
	Addr string
	// SenderMaxStreamDuration is how long a stream lasts before it ends without
	// being complete (2 min).
	SenderMaxStreamDuration time.Duration
	// DetachedTimeout is how long an operation that nobody reads is kept (5 min);
	// it is gone at the next round of maintenance, each MaintenanceInterval (30 s).
	DetachedTimeout, MaintenanceInterval time.Duration
	// RetryBufferBytes is how much of what was sent is kept to be sent again (10 MiB).
	RetryBufferBytes int
	// NoExecutionProgress leaves out the empty execution_progress that otherwise
	// follows the acknowledgement of an ADD and the answer to each command. The real
	// server sends it in about half of the cases.
	NoExecutionProgress bool
	// SlowAdd lets an execution_progress precede the acknowledgement of an ADD, as a
	// server does that needs more than two seconds for it.
	SlowAdd bool
}

func (o Options) withDefaults() Options {
	if o.Version == "" {
		o.Version = Spark42
	}
	if o.SenderMaxStreamDuration == 0 {
		o.SenderMaxStreamDuration = 2 * time.Minute
	}
	if o.DetachedTimeout == 0 {
		o.DetachedTimeout = 5 * time.Minute
	}
	if o.MaintenanceInterval == 0 {
		o.MaintenanceInterval = 30 * time.Second
	}
	if o.RetryBufferBytes == 0 {
		o.RetryBufferBytes = 10 << 20
	}
	return o
}

// Server is a Spark Connect server. Its methods may be called by several
// goroutines at once.
type Server struct {
	options Options
	network *network

	mu       sync.Mutex
	started  time.Time // the rounds of maintenance count from here
	sessions map[sessionKey]*Session
	errors   map[string]string // error id → whole message, until it is fetched
	// checkpoints are the ids of the queries that have used them; they outlive a restart.
	checkpoints map[string]string
	faults      map[string][]Fault
	calls       []Call
	inFlight    int
	running     *running // nil while the server is down
}

// running is one life of the gRPC server.
type running struct {
	grpc   *grpc.Server
	served chan error
}

// Start makes a server and runs it until the test ends. The test fails if calls or
// connections are left then: whoever dials must have hung up before.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	s := &Server{
		options: options.withDefaults(),
		network: newNetwork(options.Addr),
		faults:  map[string][]Fault{}, checkpoints: map[string]string{},
	}
	if err := s.Restart(); err != nil {
		t.Fatalf("start server: %v", err)
	}
	t.Cleanup(func() { s.finish(t) })
	return s
}

// Restart starts the server anew after a Stop, at the same address and with nothing
// in its memory: sessions and operations are gone, as they are when a driver restarts.
// Faults that were injected and the log of calls stay.
func (s *Server) Restart() error {
	listener, err := s.network.listen()
	if err != nil {
		return err
	}
	life := &running{
		grpc:   grpc.NewServer(grpc.MaxRecvMsgSize(128<<20), grpc.WaitForHandlers(true)),
		served: make(chan error, 1),
	}
	sparkpb.RegisterSparkConnectServiceServer(life.grpc, service{s})
	s.mu.Lock()
	s.started, s.sessions, s.errors = time.Now(), map[sessionKey]*Session{}, map[string]string{}
	s.running = life
	s.mu.Unlock()
	go func() { life.served <- life.grpc.Serve(listener) }()
	return nil
}

// Stop ends the server as kill -9 does: no stream is told anything, connections
// break, and new ones are refused until Restart.
func (s *Server) Stop() error {
	s.mu.Lock()
	life := s.running
	s.running = nil
	s.mu.Unlock()
	if life == nil {
		return nil
	}
	select {
	case err := <-life.served: // by itself, before anybody stopped it
		return err
	default:
	}
	s.network.close()
	life.grpc.Stop()
	<-life.served // whatever Serve makes of its end
	return nil
}

// finish is the end of the test: what is still open then was forgotten by someone.
func (s *Server) finish(t testing.TB) {
	s.network.each((*conn).closeFrozen)
	const patience = 10 * time.Second // a hung-up client needs a moment to be noticed
	for end := time.Now().Add(patience); time.Now().Before(end) && s.leftovers() > 0; {
		time.Sleep(10 * time.Millisecond)
	}
	if n := s.leftovers(); n > 0 {
		t.Errorf("connecttest: %d calls or connections are still open at the end of the test", n)
	}
	if err := s.Stop(); err != nil {
		t.Errorf("connecttest: stop server: %v", err)
	}
}

func (s *Server) leftovers() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inFlight + s.network.open()
}

// Addr is where the server listens, as host:port. An in-memory server has one too;
// it is reached only through Dialer.
func (s *Server) Addr() string { return s.network.addr() }

// Dialer connects to the server whatever address is asked for. Give it to gRPC by
// grpc.WithContextDialer.
func (s *Server) Dialer(ctx context.Context, _ string) (net.Conn, error) {
	return s.network.dial(ctx)
}

// Dial opens a connection that is closed when the test ends.
func (s *Server) Dial(t testing.TB, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options = append([]grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(s.Dialer),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(128 << 20)),
	}, options...)
	conn, err := grpc.NewClient("passthrough:///"+s.Addr(), options...)
	if err != nil {
		t.Fatalf("dial server: %v", err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("close connection: %v", err)
		}
	})
	return conn
}
