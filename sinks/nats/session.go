package nats

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/sinks"
)

// session is one connection, from its beginning to its only end, with what was
// learned on it.
type session struct {
	conn       *nats.Conn
	js         jetstream.JetStream
	dialer     *dialer
	subject    *sinks.Template
	form       form
	stream     Stream
	ackTimeout time.Duration
	routes     routes
	made       time.Time // when the stream was made, zero if it was not
	untold     bool      // questions about streams get no answer here

	over context.Context // ends, with the cause, when nothing more can come of the session
	end  context.CancelCauseFunc
	gone chan struct{} // closed when the client library has let go of the connection
}

// connect opens a session. It gives up when ctx ends.
func (s *Sink) connect(ctx context.Context) (*session, error) {
	secured, err := s.cfg.access()
	if err != nil {
		return nil, err
	}
	p := &session{dialer: &dialer{ctx: ctx}, subject: s.subject, form: s.form, stream: s.stream, ackTimeout: s.ackTimeout, gone: make(chan struct{})}
	p.over, p.end = context.WithCancelCause(context.Background())
	stop := context.AfterFunc(ctx, p.dialer.cut)
	defer stop()

	if p.conn, err = nats.Connect(s.cfg.URL, append(p.options(s.name), secured...)...); err != nil {
		p.end(err)
		return nil, s.cfg.refused(p.dialer.explain(err))
	}
	p.js, err = jetstream.New(p.conn, jetstream.WithPublishAsyncTimeout(p.ackTimeout), jetstream.WithPublishAsyncMaxPending(2*maxWindow))
	if err != nil {
		p.close()
		return nil, fmt.Errorf("prepare jetstream: %w", err)
	}
	return p, nil
}

func (p *session) options(name string) []nats.Option {
	return []nats.Option{
		nats.Name("sparkbridge " + name),
		nats.NoReconnect(),
		nats.SetCustomDialer(p.dialer),
		nats.Timeout(connectTimeout),
		nats.FlusherTimeout(p.ackTimeout),
		nats.PingInterval(pingInterval),
		nats.ErrorHandler(p.asyncError),
		nats.ClosedHandler(p.closed),
	}
}

// asyncError hears what the server says without being asked. A denied subject
// gets no other answer than this. Questions about streams may be denied: ask can
// do without, and only the text tells which subject was meant.
func (p *session) asyncError(_ *nats.Conn, _ *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrPermissionViolation) && !strings.Contains(err.Error(), `"$JS.API.`) {
		p.end(fmt.Errorf("%w; ask for the permission to publish there and to subscribe to _INBOX.>", err))
	}
}

func (p *session) closed(conn *nats.Conn) {
	err := conn.LastError()
	if err == nil {
		err = nats.ErrConnectionClosed
	}
	p.end(fmt.Errorf("connection lost: %w", err))
	close(p.gone)
}

// ended returns why the session is over, nil while it is not.
func (p *session) ended() error { return context.Cause(p.over) }

// close ends the session and waits until nothing of it runs any more. It cuts
// the connection first: a polite end would wait for a server that hangs.
func (p *session) close() {
	p.dialer.cut()
	p.conn.Close()
	<-p.gone
}

// dialer opens the connection of a session and can cut it, whatever the client
// library is doing with it: a write to a frozen server blocks all its calls.
type dialer struct {
	ctx context.Context // bounds opening, not the connection

	mu   sync.Mutex
	conn net.Conn
	err  error
}

// Dial makes dialer a nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	dial := net.Dialer{Timeout: connectTimeout}
	conn, err := dial.DialContext(d.ctx, network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.conn, d.err = conn, err
	if err == nil && d.ctx.Err() != nil { // cut came too early to see it
		_ = conn.Close()
	}
	return conn, err
}

// cut closes the connection under the client library, which then ends.
func (d *dialer) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.conn != nil {
		_ = d.conn.Close() // the second close of a connection fails, and is right
	}
}

// explain replaces the client library's summary by what really happened.
func (d *dialer) explain(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if errors.Is(err, nats.ErrNoServers) && d.err != nil {
		return d.err
	}
	return err
}
