package connecttest

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"sparkbridge/connect/sparkpb"
)

// Fault is what befalls one call. The zero value is none: it lets a call pass.
type Fault struct {
	// Hang answers nothing until the client gives up.
	Hang bool
	// Err is answered instead of the answer: a gRPC status, see Server.Error and
	// RetryAfter. nil ends a stream that is cut as if all were well.
	Err error
	// Late lets the server do the work first: the answer is lost, its effect is not.
	Late bool
	// Cut lets a stream serve Frames frames, and then hangs it or answers Err.
	Cut    bool
	Frames int
	// Before runs before anything else; it may block until ctx, the call's, ends.
	Before func(ctx context.Context)
}

var errCut = errors.New("stream is cut")

// Inject lines up faults for calls of a method, such as sparkpb.ExecutePlanMethod: each
// call takes one, in order.
func (s *Server) Inject(method string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[method] = append(s.faults[method], faults...)
}

// FailNext lines up n faults that answer err and do nothing.
func (s *Server) FailNext(method string, n int, err error) {
	for range n {
		s.Inject(method, Fault{Err: err})
	}
}

// Heal takes back the faults that no call has met yet.
func (s *Server) Heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.faults)
}

// before is the way into every method: it notes the call, checks the token, and finds
// the fault that befalls the call.
func (s *Server) before(ctx context.Context, method string, in proto.Message) (Fault, error) {
	fault := s.note(method, in)
	if fault.Before != nil {
		fault.Before(ctx)
	}
	if err := s.authenticate(ctx); err != nil {
		return Fault{}, err
	}
	if fault.Late || fault.Cut {
		return fault, nil
	}
	return Fault{}, fault.strike(ctx)
}

// strike hangs or fails the call.
func (f Fault) strike(ctx context.Context) error {
	if f.Hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.Err
}

func (s *Server) authenticate(ctx context.Context) error {
	if s.options.Token == "" {
		return nil
	}
	switch sent := metadata.ValueFromIncomingContext(ctx, "authorization"); {
	case len(sent) == 0:
		return status.Error(codes.Unauthenticated, "No authentication token provided")
	case sent[0] != "Bearer "+s.options.Token:
		return status.Error(codes.Unauthenticated, "Invalid authentication token")
	}
	return nil
}

func unary[In, Out proto.Message](ctx context.Context, s *Server, method string, in In, do func(In) (Out, error)) (out Out, err error) {
	fault, err := s.before(ctx, method, in)
	defer s.done()
	if err != nil {
		return out, err
	}
	s.mu.Lock()
	out, err = do(in)
	s.mu.Unlock()
	if fault.Late {
		return out, fault.strike(ctx)
	}
	return out, err
}

func stream[In proto.Message](s *Server, method string, in In, out frames, open func(In) (*reader, error)) error {
	ctx := out.Context()
	fault, err := s.before(ctx, method, in)
	defer s.done()
	if err != nil {
		return err
	}
	s.mu.Lock()
	r, err := open(in)
	s.mu.Unlock()
	if err != nil {
		return err
	}
	if !fault.Late && !fault.Cut {
		return r.run(ctx, out.Send)
	}
	if err := r.runFor(ctx, fault.Frames, out.Send); err != nil {
		return err
	}
	return fault.strike(ctx)
}

// runFor sends so many frames, and then lets go as if the client had gone.
func (r *reader) runFor(ctx context.Context, frames int, send func(*sparkpb.ExecutePlanResponse) error) error {
	if frames == 0 {
		return r.leave(r.deadline, nil)
	}
	err := r.run(ctx, func(response *sparkpb.ExecutePlanResponse) error {
		err := send(response)
		if frames--; err == nil && frames == 0 {
			return errCut
		}
		return err
	})
	if errors.Is(err, errCut) {
		return nil
	}
	return err
}
