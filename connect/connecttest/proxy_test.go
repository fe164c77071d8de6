package connecttest_test

import (
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

// over is a client of a session of its own that reaches the server by another address.
func over(t *testing.T, addr string) *client {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(bearer("secret")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return newClient(t, conn)
}

func onTCP(t *testing.T) *connecttest.Server {
	return connecttest.Start(t, connecttest.Options{Addr: "127.0.0.1:0", Token: "secret"})
}

func TestProxyRecordsWhatPassed(t *testing.T) {
	s := onTCP(t)
	proxy := connecttest.StartProxy(t, s.Addr())
	c := over(t, proxy.Addr())
	b := c.open()
	session(t, s, c).Progress(`{"batchId":7}`)
	read := []*sparkpb.ExecutePlanResponse{b.first, b.next(), b.next()}
	again := &bus{client: c, operation: b.operation, stream: c.reattach(t.Context(), b.operation, read[1].GetResponseId())}
	read = append(read, again.next())

	frames := proxy.Frames()
	if len(frames) != len(read) {
		t.Fatalf("recorded %d frames, want %d", len(frames), len(read))
	}
	for i, frame := range frames {
		got := new(sparkpb.ExecutePlanResponse)
		if err := proto.Unmarshal(frame.Bytes, got); err != nil || !proto.Equal(got, read[i]) {
			t.Errorf("recorded %v (%v), want %v", got, err, read[i])
		}
		want := sparkpb.ExecutePlanMethod
		if i == 3 {
			want = sparkpb.ReattachExecuteMethod
		}
		if frame.Method != want || frame.At.IsZero() {
			t.Errorf("frame %d came by %s at %v", i, frame.Method, frame.At)
		}
	}
}

func TestProxyCarriesErrorsWhole(t *testing.T) {
	s := onTCP(t)
	c := over(t, connecttest.StartProxy(t, s.Addr()).Addr())
	direct := over(t, s.Addr())
	direct.session = c.session
	got, want := status.Convert(c.probe()), status.Convert(direct.probe())
	if got.Code() != want.Code() || got.Message() != want.Message() || len(got.Details()) != 1 {
		t.Errorf("through the proxy: %v %v, want %v", got, got.Details(), want)
	}
	expect(t, "probe", c.probe(), "INVALID_HANDLE.SESSION_NOT_FOUND")
	ends(t, "reattach", c.reattach(t.Context(), c.session, ""), "INVALID_HANDLE.SESSION_NOT_FOUND")
}

func TestProxyCarriesMethodsItDoesNotKnow(t *testing.T) {
	s := onTCP(t)
	c := over(t, connecttest.StartProxy(t, s.Addr()).Addr())
	err := c.conn.Invoke(t.Context(), "/"+sparkpb.ServiceName+"/Interrupt", &sparkpb.ReleaseSessionRequest{}, &sparkpb.ReleaseSessionResponse{})
	if got := status.Convert(err); got.Code() != 12 || got.Message() != "unknown method Interrupt for service "+sparkpb.ServiceName {
		t.Errorf("unknown method: %v, want the server's own UNIMPLEMENTED", err)
	}
}
