package connecttest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/sparkpb"
)

// maxProxied is the largest message that a Proxy carries; Spark's own limit.
const maxProxied = 128 << 20

// Frame is one response on its way from a server to a client, as it was on the wire.
type Frame struct {
	Method string // sparkpb.ExecutePlanMethod or sparkpb.ReattachExecuteMethod
	At     time.Time
	Bytes  []byte // a serialized ExecutePlanResponse
}

// Proxy carries every call of any method to a server unchanged, and records the
// responses of executions. It does not decode what it carries.
type Proxy struct {
	addr    string
	target  *grpc.ClientConn
	uploads sync.WaitGroup

	mu     sync.Mutex
	frames []Frame
}

// StartProxy opens a proxy to the target, a plain-text server given as host:port, until
// the test ends. Calls that are under way then are cut.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("start proxy: %v", err)
	}
	conn, err := grpc.NewClient("passthrough:///"+target,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawBytes{}), grpc.MaxCallRecvMsgSize(maxProxied)))
	if err != nil {
		t.Fatalf("start proxy to %s: %v", target, err)
	}
	p := &Proxy{addr: listener.Addr().String(), target: conn}
	server := grpc.NewServer(grpc.ForceServerCodecV2(rawBytes{}), grpc.MaxRecvMsgSize(maxProxied),
		grpc.UnknownServiceHandler(p.carry), grpc.WaitForHandlers(true))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		p.uploads.Wait()
		if err := errors.Join(<-served, conn.Close()); err != nil {
			t.Errorf("stop proxy: %v", err)
		}
	})
	return p
}

// Addr is where clients find the proxy, as host:port.
func (p *Proxy) Addr() string { return p.addr }

// Frames are the responses so far, in the order in which they passed.
func (p *Proxy) Frames() []Frame {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Frame(nil), p.frames...)
}

func (p *Proxy) record(method string, message []byte) {
	if method != sparkpb.ExecutePlanMethod && method != sparkpb.ReattachExecuteMethod {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.frames = append(p.frames, Frame{Method: method, At: time.Now(), Bytes: message})
}

// carry is one call. Every method is treated as a stream, which a unary call is too.
func (p *Proxy) carry(_ any, client grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(client)
	ctx, cancel := context.WithCancel(client.Context())
	defer cancel()
	if sent, ok := metadata.FromIncomingContext(ctx); ok {
		ctx = metadata.NewOutgoingContext(ctx, sent.Copy())
	}
	server, err := p.target.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	if err != nil {
		return err
	}
	// It ends when this function has returned, if not before.
	p.uploads.Go(func() { upload(client, server, cancel) })
	err = p.download(method, server, client)
	client.SetTrailer(server.Trailer())
	return err
}

// upload carries requests; when the client has gone, so has the call.
func upload(client grpc.ServerStream, server grpc.ClientStream, cancel func()) {
	for {
		var message []byte
		if err := client.RecvMsg(&message); errors.Is(err, io.EOF) {
			_ = server.CloseSend() // never fails
			return
		} else if err != nil {
			cancel()
			return
		}
		if err := server.SendMsg(&message); err != nil {
			return // download learns the reason
		}
	}
}

// download carries responses and the end of the call.
func (p *Proxy) download(method string, server grpc.ClientStream, client grpc.ServerStream) error {
	if header, err := server.Header(); err == nil {
		if err := client.SetHeader(header); err != nil {
			return err
		}
	}
	for {
		var message []byte
		if err := server.RecvMsg(&message); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		p.record(method, message)
		if err := client.SendMsg(&message); err != nil {
			return err
		}
	}
}

// rawBytes is a codec that leaves messages as they are.
type rawBytes struct{}

func (rawBytes) Name() string { return "proto" }

func (rawBytes) Marshal(v any) (mem.BufferSlice, error) {
	message, ok := v.(*[]byte)
	if !ok {
		return nil, status.Errorf(codes.Internal, "proxy: cannot carry %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*message)}, nil
}

func (rawBytes) Unmarshal(data mem.BufferSlice, v any) error {
	message, ok := v.(*[]byte)
	if !ok {
		return status.Errorf(codes.Internal, "proxy: cannot carry %T", v)
	}
	*message = data.Materialize()
	return nil
}
