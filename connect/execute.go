package connect

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"sparkbridge/connect/sparkpb"
)

// errCut is a stream that broke before the server said why.
var errCut = errors.New("the stream broke when it was opened")

// executeRequest is a plan for the session, without tags: an interrupt by tag must
// never meet what we ask.
func (s *Session) executeRequest(plan *sparkpb.Plan) *sparkpb.ExecutePlanRequest {
	return &sparkpb.ExecutePlanRequest{
		SessionId:                         s.ID(),
		ClientObservedServerSideSessionId: s.observedID(),
		UserContext:                       s.user(),
		Plan:                              plan,
		ClientType:                        &s.clientType,
	}
}

func planOf(command *sparkpb.Command) *sparkpb.Plan {
	return &sparkpb.Plan{OpType: &sparkpb.Plan_Command{Command: command}}
}

// run executes a command to its end and shows each frame to see. The session is
// probed first, since a plan would create one that is not there.
func (s *Session) run(ctx context.Context, op string, command *sparkpb.Command, see func(*sparkpb.ExecutePlanResponse)) error {
	return s.ask(ctx, op, func(ctx context.Context, spark sparkpb.SparkConnectServiceClient) error {
		if err := s.probe(ctx, spark); err != nil {
			return err
		}
		return s.execute(ctx, spark, command, see)
	})
}

func (s *Session) execute(ctx context.Context, spark sparkpb.SparkConnectServiceClient, command *sparkpb.Command, see func(*sparkpb.ExecutePlanResponse)) error {
	stream, err := opened(spark.ExecutePlan(s.outgoing(ctx), s.executeRequest(planOf(command)), s.receiveLimit()))
	if err != nil {
		return err
	}
	for {
		frame, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.observe(frame.GetServerSideSessionId())
		see(frame)
	}
}

type frames = grpc.ServerStreamingClient[sparkpb.ExecutePlanResponse]

// opened keeps a stream that broke while it was opened from passing for one that
// has ended cleanly.
func opened(stream frames, err error) (frames, error) {
	if errors.Is(err, io.EOF) {
		return nil, errCut
	}
	return stream, err
}
