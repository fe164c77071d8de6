// Package sparkpb holds the messages of the Spark Connect protocol that the bridge
// speaks, generated from connect/proto, and the service that carries them.
//
// The messages are registered under a package name of our own, so a program may
// link another Spark Connect client beside this package. On the wire they are
// Spark's: field numbers, types and method paths are the same.
package sparkpb

import (
	"context"

	"google.golang.org/grpc"
)

// ServiceName is the name that Spark gives its service, the first part of every
// method path. It differs from the package of our messages, which is why the
// service is written here by hand: a generator would derive it from that package.
const ServiceName = "spark.connect.SparkConnectService"

// The full paths of the methods, as gRPC interceptors see them.
const (
	ExecutePlanMethod       = "/" + ServiceName + "/ExecutePlan"
	ReattachExecuteMethod   = "/" + ServiceName + "/ReattachExecute"
	ReleaseExecuteMethod    = "/" + ServiceName + "/ReleaseExecute"
	AnalyzePlanMethod       = "/" + ServiceName + "/AnalyzePlan"
	ReleaseSessionMethod    = "/" + ServiceName + "/ReleaseSession"
	FetchErrorDetailsMethod = "/" + ServiceName + "/FetchErrorDetails"
	ConfigMethod            = "/" + ServiceName + "/Config"
)

// SparkConnectServiceClient calls a Spark Connect server. All methods may be
// called by several goroutines at once; errors are gRPC statuses.
type SparkConnectServiceClient interface {
	// ExecutePlan runs a command; the stream ends with io.EOF, which says that
	// the server closed it, not that the operation is complete.
	ExecutePlan(ctx context.Context, in *ExecutePlanRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[ExecutePlanResponse], error)
	// ReattachExecute reads on in a reattachable operation.
	ReattachExecute(ctx context.Context, in *ReattachExecuteRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[ExecutePlanResponse], error)
	// ReleaseExecute lets the server forget an operation or its first frames.
	ReleaseExecute(ctx context.Context, in *ReleaseExecuteRequest, opts ...grpc.CallOption) (*ReleaseExecuteResponse, error)
	// AnalyzePlan asks for the server's version or about a plan, which creates the session.
	AnalyzePlan(ctx context.Context, in *AnalyzePlanRequest, opts ...grpc.CallOption) (*AnalyzePlanResponse, error)
	// ReleaseSession closes a session for ever and stops its queries.
	ReleaseSession(ctx context.Context, in *ReleaseSessionRequest, opts ...grpc.CallOption) (*ReleaseSessionResponse, error)
	// FetchErrorDetails answers with the whole of an error, once.
	FetchErrorDetails(ctx context.Context, in *FetchErrorDetailsRequest, opts ...grpc.CallOption) (*FetchErrorDetailsResponse, error)
	// Config reads or changes settings of the session, which it creates.
	Config(ctx context.Context, in *ConfigRequest, opts ...grpc.CallOption) (*ConfigResponse, error)
}

// NewSparkConnectServiceClient makes a client that calls over cc.
func NewSparkConnectServiceClient(cc grpc.ClientConnInterface) SparkConnectServiceClient {
	return client{cc}
}

type client struct{ cc grpc.ClientConnInterface }

func (c client) ExecutePlan(ctx context.Context, in *ExecutePlanRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[ExecutePlanResponse], error) {
	return openStream(ctx, c.cc, ExecutePlanMethod, in, opts)
}

func (c client) ReattachExecute(ctx context.Context, in *ReattachExecuteRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[ExecutePlanResponse], error) {
	return openStream(ctx, c.cc, ReattachExecuteMethod, in, opts)
}

func (c client) ReleaseExecute(ctx context.Context, in *ReleaseExecuteRequest, opts ...grpc.CallOption) (*ReleaseExecuteResponse, error) {
	return invoke[ReleaseExecuteResponse](ctx, c.cc, ReleaseExecuteMethod, in, opts)
}

func (c client) AnalyzePlan(ctx context.Context, in *AnalyzePlanRequest, opts ...grpc.CallOption) (*AnalyzePlanResponse, error) {
	return invoke[AnalyzePlanResponse](ctx, c.cc, AnalyzePlanMethod, in, opts)
}

func (c client) ReleaseSession(ctx context.Context, in *ReleaseSessionRequest, opts ...grpc.CallOption) (*ReleaseSessionResponse, error) {
	return invoke[ReleaseSessionResponse](ctx, c.cc, ReleaseSessionMethod, in, opts)
}

func (c client) FetchErrorDetails(ctx context.Context, in *FetchErrorDetailsRequest, opts ...grpc.CallOption) (*FetchErrorDetailsResponse, error) {
	return invoke[FetchErrorDetailsResponse](ctx, c.cc, FetchErrorDetailsMethod, in, opts)
}

func (c client) Config(ctx context.Context, in *ConfigRequest, opts ...grpc.CallOption) (*ConfigResponse, error) {
	return invoke[ConfigResponse](ctx, c.cc, ConfigMethod, in, opts)
}

func invoke[Out any](ctx context.Context, cc grpc.ClientConnInterface, method string, in any, opts []grpc.CallOption) (*Out, error) {
	out := new(Out)
	if err := cc.Invoke(ctx, method, in, out, opts...); err != nil {
		return nil, err
	}
	return out, nil
}

func openStream[In any](ctx context.Context, cc grpc.ClientConnInterface, method string, in *In, opts []grpc.CallOption) (grpc.ServerStreamingClient[ExecutePlanResponse], error) {
	s, err := cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method, opts...)
	if err != nil {
		return nil, err
	}
	x := &grpc.GenericClientStream[In, ExecutePlanResponse]{ClientStream: s}
	if err := x.Send(in); err != nil {
		return nil, err
	}
	return x, x.CloseSend()
}
