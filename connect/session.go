package connect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"sparkbridge/connect/sparkpb"
)

// Session is one Spark Connect session: a user and an id on a server. Its methods
// may be called by several goroutines at once. Questions are asked again until
// they are answered or ctx ends; each call keeps the session alive on the server.
type Session struct {
	client     *Client
	link       *link
	remote     Remote
	clientType string
	log        *slog.Logger
	notices    notices
	owned      bool         // it was made by us, and ends with us
	plans      atomic.Int64 // the last number that a relation was given

	mu       sync.Mutex
	observed string // the server's own id of the session, once it has told it
	streams  *Streams

	closing sync.Once
	life    context.Context // ends when Close has done its work
	over    context.CancelFunc
}

// UserID is the user that the session belongs to.
func (s *Session) UserID() string { return s.remote.UserID }

// Address is where the server is, as host:port.
func (s *Session) Address() string { return s.remote.Address() }

// ID is the session's id.
func (s *Session) ID() string { return s.remote.SessionID }

// ServerSideID is the id under which the running driver knows the session, empty
// before it has told it. It changes when the driver restarts.
func (s *Session) ServerSideID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.observed
}

// Forget lets the session go on after ErrSessionChanged: whatever driver answers
// next is the right one.
func (s *Session) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observed = ""
}

func (s *Session) observe(serverSideID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.observed == "" {
		s.observed = serverSideID
	}
}

// Probe asks whether the session exists, without creating it: nil,
// ErrSessionNotFound, ErrSessionClosed, or ErrSessionChanged.
func (s *Session) Probe(ctx context.Context) error {
	return s.ask(ctx, "probe session", s.probe)
}

// probe releases an operation that does not exist: the session is looked up first.
func (s *Session) probe(ctx context.Context, spark sparkpb.SparkConnectServiceClient) error {
	return s.release(ctx, spark, s.releaseRequest(uuid.NewString()))
}

// Create makes the session unless it exists.
func (s *Session) Create(ctx context.Context) error {
	return s.ask(ctx, "create session", func(ctx context.Context, spark sparkpb.SparkConnectServiceClient) error {
		_, err := s.analyze(ctx, spark)
		return err
	})
}

// Close removes the listeners, and ends a session that was made by Open: its queries stop, and
// its id is spent. Any other session stays as it is, for its owner. What still waits in it, and
// whatever is asked later, is ErrSessionClosed. A bus that was opened by OpenBus must be closed
// before.
func (s *Session) Close() (err error) {
	s.closing.Do(func() {
		err = s.unlisten()
		if s.owned {
			err = errors.Join(err, s.end())
		}
		s.over()
		err = errors.Join(err, s.client.release(s.link))
	})
	return err
}

// living runs what asks Spark, and ends it with the session: over a connection that is closed
// it would take the refusals of our own client for weather.
func (s *Session) living(ctx context.Context, op string, ask func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	if s.life.Err() != nil {
		return closedHere(op)
	}
	err := ask(ctx)
	if err != nil && s.life.Err() != nil {
		return closedHere(op)
	}
	return err
}

func closedHere(op string) *Error {
	return &Error{Op: op, Message: "this program has closed it", meaning: ErrSessionClosed, cause: ErrSessionClosed, definite: true}
}

// demand makes a call in the session, which must be there, until Spark has answered it or
// ctx ends; then the error is that of ctx. Whatever Spark refuses it for is an answer.
func (s *Session) demand(ctx context.Context, op string, do func(context.Context, sparkpb.SparkConnectServiceClient) error) error {
	err := s.askUntil(ctx, op, (*Error).answered, func(ctx context.Context, spark sparkpb.SparkConnectServiceClient) error {
		if err := s.probe(ctx, spark); err != nil {
			return err
		}
		return do(ctx, spark)
	})
	if e, ok := errors.AsType[*Error](err); ok {
		return s.detailed(ctx, e)
	}
	return err
}

// ask makes a call until it is answered, definitely or well, or ctx ends; then the
// error is that of ctx.
func (s *Session) ask(ctx context.Context, op string, do func(context.Context, sparkpb.SparkConnectServiceClient) error) error {
	return s.askUntil(ctx, op, (*Error).Definite, do)
}

func (s *Session) askUntil(ctx context.Context, op string, answered func(*Error) bool, do func(context.Context, sparkpb.SparkConnectServiceClient) error) error {
	return s.living(ctx, op, func(ctx context.Context) error { return s.tryUntil(ctx, op, answered, do) })
}

func (s *Session) tryUntil(ctx context.Context, op string, answered func(*Error) bool, do func(context.Context, sparkpb.SparkConnectServiceClient) error) error {
	w, bound := newWaits(), callTime
	for {
		err := s.link.call(ctx, bound, do)
		if err == nil {
			s.notices.over(op)
			return nil
		}
		e := classify(op, err)
		if answered(e) {
			s.notices.over(op)
			return e
		}
		if ctx.Err() == nil {
			bound = min(2*bound, maxCallTime)
			wait := w.next(e)
			s.notices.failed(s.log, e, wait)
			_ = s.link.pause(ctx, wait, e.floor()) // fails with ctx only
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w; the last answer: %s", ctx.Err(), e.Error())
		}
	}
}

// release sends a ReleaseExecute and notes who has answered.
func (s *Session) release(ctx context.Context, spark sparkpb.SparkConnectServiceClient, r *sparkpb.ReleaseExecuteRequest) error {
	answer, err := spark.ReleaseExecute(s.outgoing(ctx), r)
	s.observe(answer.GetServerSideSessionId())
	return err
}

// releaseRequest lets the server forget all of an operation.
func (s *Session) releaseRequest(operationID string) *sparkpb.ReleaseExecuteRequest {
	return &sparkpb.ReleaseExecuteRequest{
		SessionId:                         s.ID(),
		ClientObservedServerSideSessionId: s.observedID(),
		UserContext:                       s.user(),
		OperationId:                       operationID,
		ClientType:                        &s.clientType,
		Release:                           &sparkpb.ReleaseExecuteRequest_ReleaseAll_{ReleaseAll: &sparkpb.ReleaseExecuteRequest_ReleaseAll{}},
	}
}

func (s *Session) user() *sparkpb.UserContext {
	return &sparkpb.UserContext{UserId: s.remote.UserID, UserName: s.remote.UserID}
}

// observedID is sent with each request, so that a session which was made again
// answers ErrSessionChanged instead of passing for the old one.
func (s *Session) observedID() *string {
	if id := s.ServerSideID(); id != "" {
		return &id
	}
	return nil
}

func (s *Session) key() sessionKey {
	return sessionKey{s.link.key.address, s.remote.UserID, strings.ToLower(s.remote.SessionID)}
}

// outgoing puts the token and the headers on a call.
func (s *Session) outgoing(ctx context.Context) context.Context {
	for k, v := range s.remote.Headers {
		ctx = metadata.AppendToOutgoingContext(ctx, k, v)
	}
	if s.remote.Token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+s.remote.Token)
	}
	return ctx
}

// receiveLimit bounds one message of a stream.
func (s *Session) receiveLimit() grpc.CallOption {
	n := s.remote.MaxMessageBytes
	if n <= 0 {
		n = defaultMaxMessageBytes
	}
	return grpc.MaxCallRecvMsgSize(n)
}
