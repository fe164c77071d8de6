package connect

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// ClientOptions configure a Client. The zero value is ready to use.
type ClientOptions struct {
	// Log takes what happens to connections and calls; nil discards it.
	Log *slog.Logger
	// Version of the program, told to the server as part of the client's name.
	Version string
	// Dial is added to the options of each connection, to reach a server in the
	// same process.
	Dial []grpc.DialOption
}

// Client opens sessions. Sessions on one server share a gRPC connection. Its
// methods may be called by several goroutines at once.
type Client struct {
	opts ClientOptions
	adds gates

	mu    sync.Mutex
	links map[linkKey]*link
}

// linkKey is what must be the same for two sessions to share a connection. Users,
// tokens and headers need not be: they travel with each call.
type linkKey struct {
	address   string
	tls       TLS // nil where none is spoken
	keepalive Keepalive
}

// NewClient makes a client. It connects when a session is first asked.
func NewClient(o ClientOptions) *Client {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Version == "" {
		o.Version = "devel"
	}
	return &Client{opts: o, links: make(map[linkKey]*link)}
}

// Session is the session that r names, or a new one under a random id where it
// names none. Nothing is asked yet. Close it after use.
func (c *Client) Session(r Remote) (*Session, error) {
	if err := r.secure(); err != nil {
		return nil, err
	}
	if r.SessionID == "" {
		r.SessionID = uuid.NewString()
	}
	l, err := c.acquire(r)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", r.Address(), err)
	}
	life, over := context.WithCancel(context.Background())
	return &Session{
		life:       life,
		over:       over,
		client:     c,
		link:       l,
		remote:     r,
		clientType: c.clientType(r),
		log:        c.opts.Log.With("user_id", r.UserID, "session_id", r.SessionID),
	}, nil
}

// clientType is the client's name in the form that Spark's own clients use.
func (c *Client) clientType(r Remote) string {
	agent := r.UserAgent
	if agent == "" {
		agent = "_SPARK_CONNECT_GO"
	}
	return agent + " sparkbridge/" + c.opts.Version + " os/" + runtime.GOOS + " go/" + strings.TrimPrefix(runtime.Version(), "go")
}

func (c *Client) acquire(r Remote) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := linkKey{address: r.Address(), keepalive: r.Keepalive}
	if r.UseSSL {
		key.tls = cmp.Or[TLS](r.TLS, systemTLS{})
	}
	if l := c.links[key]; l != nil {
		l.refs++
		return l, nil
	}
	l := &link{key: key, refs: 1, log: c.opts.Log, dial: func(w *wire) (*grpc.ClientConn, error) {
		return grpc.NewClient("dns:///"+key.address, c.dialOptions(key, w)...)
	}}
	if err := l.open(); err != nil {
		return nil, err
	}
	c.links[key] = l
	return l, nil
}

func (c *Client) release(l *link) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.refs--; l.refs > 0 {
		return nil
	}
	delete(c.links, l.key)
	return l.close()
}

func (c *Client) dialOptions(key linkKey, w *wire) []grpc.DialOption {
	security := insecure.NewCredentials()
	if key.tls != nil {
		security = newSecured(key.tls)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(security),
		grpc.WithUserAgent("sparkbridge/" + c.opts.Version),
		grpc.WithStatsHandler(w),
		grpc.WithDisableServiceConfig(),
		// gRPC's own pauses are short because ours come on top.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 10 * time.Second,
		}),
		// Fixed windows, because gRPC measures the path for growing ones with pings,
		// and a server ends connections that ping too often.
		grpc.WithInitialWindowSize(1 << 20),
		grpc.WithInitialConnWindowSize(16 << 20),
	}
	if k := key.keepalive; !k.Disabled && k.Time > 0 {
		options = append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: k.Time, Timeout: k.Timeout, PermitWithoutStream: k.WithoutCalls,
		}))
	}
	return append(options, c.opts.Dial...)
}

// gates let one goroutine at a time add a listener to a session: two that race can
// both be acknowledged, and then one of them can never be removed.
type gates struct {
	mu   sync.Mutex
	gate map[sessionKey]chan struct{}
}

type sessionKey struct{ address, user, session string }

// enter waits for the gate of a session, and returns how to leave it.
func (g *gates) enter(ctx context.Context, key sessionKey) (leave func(), err error) {
	g.mu.Lock()
	if g.gate == nil {
		g.gate = make(map[sessionKey]chan struct{})
	}
	gate := g.gate[key]
	if gate == nil {
		gate = make(chan struct{}, 1)
		g.gate[key] = gate
	}
	g.mu.Unlock()
	select {
	case gate <- struct{}{}:
		return func() { <-gate }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
