package connecttest_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"sparkbridge/connect/sparkpb"
)

// client is a Spark Connect client without any cleverness: one method for each thing
// that a test does to a session.
type client struct {
	t             *testing.T
	conn          grpc.ClientConnInterface
	rpc           sparkpb.SparkConnectServiceClient
	user, session string
	observed      *string // server-side session id that is sent along, if any
}

// bearer is a token that a client shows; empty: it shows none.
type bearer string

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if b == "" {
		return nil, nil
	}
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

func (bearer) RequireTransportSecurity() bool { return false }

type responses = grpc.ServerStreamingClient[sparkpb.ExecutePlanResponse]

func newClient(t *testing.T, conn grpc.ClientConnInterface) *client {
	return &client{t: t, conn: conn, rpc: sparkpb.NewSparkConnectServiceClient(conn), user: "tester", session: uuid.NewString()}
}

func (c *client) context() *sparkpb.UserContext { return &sparkpb.UserContext{UserId: c.user} }

// create makes the session and returns the server's own id of it.
func (c *client) create() string {
	c.t.Helper()
	out, err := c.rpc.AnalyzePlan(c.t.Context(), c.analyze())
	if err != nil {
		c.t.Fatalf("create session: %v", err)
	}
	return out.GetServerSideSessionId()
}

func (c *client) analyze() *sparkpb.AnalyzePlanRequest {
	return &sparkpb.AnalyzePlanRequest{
		SessionId: c.session, UserContext: c.context(), ClientObservedServerSideSessionId: c.observed,
		Analyze: &sparkpb.AnalyzePlanRequest_SparkVersion_{SparkVersion: &sparkpb.AnalyzePlanRequest_SparkVersion{}},
	}
}

func (c *client) probe() error { return c.releaseAll(uuid.NewString()) }

func (c *client) releaseAll(operation string) error {
	in := c.release(operation)
	in.Release = &sparkpb.ReleaseExecuteRequest_ReleaseAll_{ReleaseAll: &sparkpb.ReleaseExecuteRequest_ReleaseAll{}}
	_, err := c.rpc.ReleaseExecute(c.t.Context(), in)
	return err
}

func (c *client) releaseUntil(operation, response string) error {
	in := c.release(operation)
	in.Release = &sparkpb.ReleaseExecuteRequest_ReleaseUntil_{ReleaseUntil: &sparkpb.ReleaseExecuteRequest_ReleaseUntil{ResponseId: response}}
	_, err := c.rpc.ReleaseExecute(c.t.Context(), in)
	return err
}

func (c *client) release(operation string) *sparkpb.ReleaseExecuteRequest {
	return &sparkpb.ReleaseExecuteRequest{
		SessionId: c.session, UserContext: c.context(), OperationId: operation, ClientObservedServerSideSessionId: c.observed,
	}
}

func (c *client) releaseSession() error {
	_, err := c.rpc.ReleaseSession(c.t.Context(), &sparkpb.ReleaseSessionRequest{SessionId: c.session, UserContext: c.context()})
	return err
}

// execute runs a command; the operation is reattachable if it has an id.
func (c *client) execute(ctx context.Context, operation string, command *sparkpb.Command) responses {
	c.t.Helper()
	in := &sparkpb.ExecutePlanRequest{
		SessionId: c.session, UserContext: c.context(), ClientObservedServerSideSessionId: c.observed,
		Plan: &sparkpb.Plan{OpType: &sparkpb.Plan_Command{Command: command}},
	}
	if operation != "" {
		in.OperationId = &operation
		in.RequestOptions = []*sparkpb.ExecutePlanRequest_RequestOption{{
			RequestOption: &sparkpb.ExecutePlanRequest_RequestOption_ReattachOptions{ReattachOptions: &sparkpb.ReattachOptions{Reattachable: true}},
		}}
	}
	stream, err := c.rpc.ExecutePlan(ctx, in)
	if err != nil {
		c.t.Fatalf("execute: %v", err)
	}
	return stream
}

// add sends an ADD of its own operation, reattachable.
func (c *client) add(ctx context.Context) (operation string, stream responses) {
	c.t.Helper()
	operation = uuid.NewString()
	return operation, c.execute(ctx, operation, addCommand())
}

// remove sends a REMOVE as clients do: not reattachable, and nothing comes but the end.
func (c *client) remove() {
	c.t.Helper()
	frames, err := drain(c.execute(c.t.Context(), "", removeCommand()))
	if err != nil || len(frames) != 0 {
		c.t.Fatalf("REMOVE answered %v and %v, want nothing and a clean end", frames, err)
	}
}

// reattach reads on behind a response, from the first one if it is empty.
func (c *client) reattach(ctx context.Context, operation, last string) responses {
	c.t.Helper()
	in := &sparkpb.ReattachExecuteRequest{
		SessionId: c.session, UserContext: c.context(), OperationId: operation, ClientObservedServerSideSessionId: c.observed,
	}
	if last != "" {
		in.LastResponseId = &last
	}
	stream, err := c.rpc.ReattachExecute(ctx, in)
	if err != nil {
		c.t.Fatalf("reattach: %v", err)
	}
	return stream
}

// receive reads the next frame, which must come.
func receive(t *testing.T, stream responses) *sparkpb.ExecutePlanResponse {
	t.Helper()
	frame, err := stream.Recv()
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	return frame
}

// drain reads to the end of a stream; a clean end is no error.
func drain(stream responses) (frames []*sparkpb.ExecutePlanResponse, err error) {
	for {
		frame, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return frames, nil
		}
		if err != nil {
			return frames, err
		}
		frames = append(frames, frame)
	}
}

// class is Spark's error class of an error, empty where there is none.
func class(err error) string { return info(err)["errorClass"] }

// info is what Spark says about an error beside its message.
func info(err error) map[string]string {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == "org.apache.spark" {
			return info.GetMetadata()
		}
	}
	return nil
}

// executeAny sends a request of another type with the same meaning on the wire.
func (c *client) executeAny(ctx context.Context, request proto.Message) responses {
	c.t.Helper()
	stream, err := c.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, sparkpb.ExecutePlanMethod)
	if err == nil {
		err = stream.SendMsg(request)
	}
	if err == nil {
		err = stream.CloseSend()
	}
	if err != nil {
		c.t.Fatalf("execute: %v", err)
	}
	return &grpc.GenericClientStream[sparkpb.ExecutePlanRequest, sparkpb.ExecutePlanResponse]{ClientStream: stream}
}
