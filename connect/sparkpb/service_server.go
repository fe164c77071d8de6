package sparkpb

import (
	"context"

	"google.golang.org/grpc"
)

// SparkConnectServiceServer answers as a Spark Connect server; errors should be
// gRPC statuses.
type SparkConnectServiceServer interface {
	ExecutePlan(*ExecutePlanRequest, grpc.ServerStreamingServer[ExecutePlanResponse]) error
	ReattachExecute(*ReattachExecuteRequest, grpc.ServerStreamingServer[ExecutePlanResponse]) error
	ReleaseExecute(context.Context, *ReleaseExecuteRequest) (*ReleaseExecuteResponse, error)
	AnalyzePlan(context.Context, *AnalyzePlanRequest) (*AnalyzePlanResponse, error)
	ReleaseSession(context.Context, *ReleaseSessionRequest) (*ReleaseSessionResponse, error)
	FetchErrorDetails(context.Context, *FetchErrorDetailsRequest) (*FetchErrorDetailsResponse, error)
	Config(context.Context, *ConfigRequest) (*ConfigResponse, error)
}

// RegisterSparkConnectServiceServer adds srv to a gRPC server, under Spark's paths.
func RegisterSparkConnectServiceServer(s grpc.ServiceRegistrar, srv SparkConnectServiceServer) {
	s.RegisterService(&ServiceDesc, srv)
}

// ServiceDesc describes the part of Spark's service that is declared here; calls of
// its other methods are answered UNIMPLEMENTED.
var ServiceDesc = grpc.ServiceDesc{
	ServiceName: ServiceName,
	HandlerType: (*SparkConnectServiceServer)(nil),
	Methods: []grpc.MethodDesc{
		unary("ReleaseExecute", SparkConnectServiceServer.ReleaseExecute),
		unary("AnalyzePlan", SparkConnectServiceServer.AnalyzePlan),
		unary("ReleaseSession", SparkConnectServiceServer.ReleaseSession),
		unary("FetchErrorDetails", SparkConnectServiceServer.FetchErrorDetails),
		unary("Config", SparkConnectServiceServer.Config),
	},
	Streams: []grpc.StreamDesc{
		streaming("ExecutePlan", SparkConnectServiceServer.ExecutePlan),
		streaming("ReattachExecute", SparkConnectServiceServer.ReattachExecute),
	},
	Metadata: "sparkbridge/connect/v1/service.proto",
}

func unary[In, Out any](name string, call func(SparkConnectServiceServer, context.Context, *In) (*Out, error)) grpc.MethodDesc {
	handler := func(srv any, ctx context.Context, decode func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		in := new(In)
		if err := decode(in); err != nil {
			return nil, err
		}
		handle := func(ctx context.Context, req any) (any, error) {
			return call(srv.(SparkConnectServiceServer), ctx, req.(*In))
		}
		if intercept == nil {
			return handle(ctx, in)
		}
		info := &grpc.UnaryServerInfo{Server: srv, FullMethod: "/" + ServiceName + "/" + name}
		return intercept(ctx, in, info, handle)
	}
	return grpc.MethodDesc{MethodName: name, Handler: handler}
}

func streaming[In any](name string, call func(SparkConnectServiceServer, *In, grpc.ServerStreamingServer[ExecutePlanResponse]) error) grpc.StreamDesc {
	handler := func(srv any, stream grpc.ServerStream) error {
		in := new(In)
		if err := stream.RecvMsg(in); err != nil {
			return err
		}
		out := &grpc.GenericServerStream[In, ExecutePlanResponse]{ServerStream: stream}
		return call(srv.(SparkConnectServiceServer), in, out)
	}
	return grpc.StreamDesc{StreamName: name, Handler: handler, ServerStreams: true}
}
