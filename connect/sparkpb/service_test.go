package sparkpb_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"sparkbridge/connect/sparkpb"
)

// echo answers each call with the path by which it came.
type echo struct{}

func path(ctx context.Context) string {
	name, _ := grpc.Method(ctx)
	return name
}

func (echo) ExecutePlan(_ *sparkpb.ExecutePlanRequest, s grpc.ServerStreamingServer[sparkpb.ExecutePlanResponse]) error {
	return s.Send(&sparkpb.ExecutePlanResponse{SessionId: path(s.Context())})
}

func (echo) ReattachExecute(_ *sparkpb.ReattachExecuteRequest, s grpc.ServerStreamingServer[sparkpb.ExecutePlanResponse]) error {
	return s.Send(&sparkpb.ExecutePlanResponse{SessionId: path(s.Context())})
}

func (echo) ReleaseExecute(ctx context.Context, _ *sparkpb.ReleaseExecuteRequest) (*sparkpb.ReleaseExecuteResponse, error) {
	return &sparkpb.ReleaseExecuteResponse{SessionId: path(ctx)}, nil
}

func (echo) AnalyzePlan(ctx context.Context, _ *sparkpb.AnalyzePlanRequest) (*sparkpb.AnalyzePlanResponse, error) {
	return &sparkpb.AnalyzePlanResponse{SessionId: path(ctx)}, nil
}

func (echo) ReleaseSession(ctx context.Context, _ *sparkpb.ReleaseSessionRequest) (*sparkpb.ReleaseSessionResponse, error) {
	return &sparkpb.ReleaseSessionResponse{SessionId: path(ctx)}, nil
}

func (echo) FetchErrorDetails(ctx context.Context, _ *sparkpb.FetchErrorDetailsRequest) (*sparkpb.FetchErrorDetailsResponse, error) {
	return &sparkpb.FetchErrorDetailsResponse{SessionId: path(ctx)}, nil
}

func (echo) Config(ctx context.Context, _ *sparkpb.ConfigRequest) (*sparkpb.ConfigResponse, error) {
	return &sparkpb.ConfigResponse{SessionId: path(ctx)}, nil
}

func TestEveryMethodTravelsUnderSparksPath(t *testing.T) {
	var intercepted []string
	note := func(ctx context.Context, in any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		intercepted = append(intercepted, info.FullMethod)
		return next(ctx, in)
	}
	client := dial(t, grpc.UnaryInterceptor(note))
	ctx := metadata.AppendToOutgoingContext(t.Context(), "k", "v")

	got := map[string]string{}
	stream, err := client.ExecutePlan(ctx, &sparkpb.ExecutePlanRequest{})
	got["ExecutePlan"] = first(t, stream, err)
	stream, err = client.ReattachExecute(ctx, &sparkpb.ReattachExecuteRequest{})
	got["ReattachExecute"] = first(t, stream, err)
	release, err := client.ReleaseExecute(ctx, &sparkpb.ReleaseExecuteRequest{})
	got["ReleaseExecute"] = session(t, release, err)
	analyzed, err := client.AnalyzePlan(ctx, &sparkpb.AnalyzePlanRequest{})
	got["AnalyzePlan"] = session(t, analyzed, err)
	closed, err := client.ReleaseSession(ctx, &sparkpb.ReleaseSessionRequest{})
	got["ReleaseSession"] = session(t, closed, err)
	details, err := client.FetchErrorDetails(ctx, &sparkpb.FetchErrorDetailsRequest{})
	got["FetchErrorDetails"] = session(t, details, err)
	config, err := client.Config(ctx, &sparkpb.ConfigRequest{})
	got["Config"] = session(t, config, err)

	for name, path := range got {
		if want := "/spark.connect.SparkConnectService/" + name; path != want {
			t.Errorf("%s travels as %q, want %q", name, path, want)
		}
	}
	if len(intercepted) != 5 {
		t.Errorf("interceptor saw %v, want the five unary methods", intercepted)
	}
}

func dial(t *testing.T, opts ...grpc.ServerOption) sparkpb.SparkConnectServiceClient {
	listener := bufconn.Listen(1 << 16)
	server := grpc.NewServer(opts...)
	sparkpb.RegisterSparkConnectServiceServer(server, echo{})
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); err != nil {
			t.Error(err)
		}
	}()
	conn, err := grpc.NewClient("passthrough:///fake",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
		server.Stop()
		<-served
	})
	return sparkpb.NewSparkConnectServiceClient(conn)
}

func first(t *testing.T, s grpc.ServerStreamingClient[sparkpb.ExecutePlanResponse], err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	frame, err := s.Recv()
	return session(t, frame, err)
}

func session(t *testing.T, m interface{ GetSessionId() string }, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return m.GetSessionId()
}

func TestNothingIsRegisteredUnderSparksNames(t *testing.T) {
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		if file.Package() == "spark.connect" || strings.HasPrefix(file.Path(), "spark/connect/") {
			t.Errorf("%s claims a name that another Spark client in the program needs", file.Path())
		}
		return true
	})
	if _, err := protoregistry.GlobalFiles.FindDescriptorByName("sparkbridge.connect.v1.Plan"); err != nil {
		t.Errorf("our own messages are not registered: %v", err)
	}
}
