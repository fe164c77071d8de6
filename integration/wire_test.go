//go:build integration

package integration

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"sparkbridge/connect/sparkpb"
)

// wire is a proxy between the bridge and Spark that keeps what passes, in bytes, and knows
// nothing of what the bridge makes of them.
type wire struct {
	address string
	spark   *grpc.ClientConn

	mu    sync.Mutex
	calls []*call
}

// call is one RPC.
type call struct {
	method  string // without the service's name
	request []byte
	answers [][]byte
	clean   bool // Spark has ended it without an error
}

// tapWire starts a proxy to a Spark server.
func tapWire(t *testing.T, target string) *wire {
	t.Helper()
	spark, err := grpc.NewClient(strings.TrimPrefix(target, "sc://"), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(untouched{}), grpc.MaxCallRecvMsgSize(128<<20)),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, MaxDelay: time.Second}}))
	requireNoError(t, err)
	w := &wire{spark: spark}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	requireNoError(t, err)
	w.address = listener.Addr().String()
	server := grpc.NewServer(grpc.ForceServerCodec(untouched{}), grpc.UnknownServiceHandler(w.pass), grpc.MaxRecvMsgSize(128<<20))
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := errors.Join(<-served, spark.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// remote is the connection string of a session through the proxy.
func (w *wire) remote(session string) string {
	return "sc://" + w.address + "/;user_id=" + user + ";session_id=" + session
}

// pass carries one call. Spark's methods take one message each and answer with one or more.
func (w *wire) pass(_ any, client grpc.ServerStream) error {
	path, _ := grpc.MethodFromServerStream(client)
	c := &call{method: path[strings.LastIndex(path, "/")+1:]}
	if err := client.RecvMsg(&c.request); err != nil {
		return err
	}
	w.mu.Lock()
	w.calls = append(w.calls, c)
	w.mu.Unlock()

	headers, _ := metadata.FromIncomingContext(client.Context())
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(client.Context(), headers))
	defer cancel()
	server, err := w.spark.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, path)
	if err != nil {
		return err
	}
	if err := errors.Join(server.SendMsg(&c.request), server.CloseSend()); err != nil {
		return err
	}
	for {
		var answer []byte
		err := server.RecvMsg(&answer)
		w.keep(c, answer, err)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := client.SendMsg(&answer); err != nil {
			return err
		}
	}
}

func (w *wire) keep(c *call, answer []byte, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		c.answers = append(c.answers, answer)
	}
	c.clean = errors.Is(err, io.EOF)
}

// each shows the calls so far of one method, in order.
func (w *wire) each(method string, show func(call)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if c.method == method {
			show(*c)
		}
	}
}

// total counts all calls.
func (w *wire) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls)
}

func (w *wire) count(method string) (n int) {
	w.each(method, func(call) { n++ })
	return n
}

// cleanEnds counts the streams that Spark has ended because of their age.
func (w *wire) cleanEnds() (n int) {
	w.each("ReattachExecute", func(c call) {
		if c.clean {
			n++
		}
	})
	return n
}

// busCommands counts the removals of bus listeners, and lists the operations that add one. A
// silent one is sent again when Spark ends its stream.
func (w *wire) busCommands(t *testing.T) (adds []string, removes int) {
	w.each("ExecutePlan", func(c call) {
		var request sparkpb.ExecutePlanRequest
		if err := proto.Unmarshal(c.request, &request); err != nil {
			t.Error(err)
		}
		command := request.GetPlan().GetCommand().GetStreamingQueryListenerBusCommand()
		if command.GetAddListenerBusListener() && !slices.Contains(adds, request.GetOperationId()) {
			adds = append(adds, request.GetOperationId())
		}
		if command.GetRemoveListenerBusListener() {
			removes++
		}
	})
	return adds, removes
}

// reattached lists the operations of all ReattachExecute calls, each once.
func (w *wire) reattached(t *testing.T) (operations []string) {
	w.each("ReattachExecute", func(c call) {
		var request sparkpb.ReattachExecuteRequest
		if err := proto.Unmarshal(c.request, &request); err != nil {
			t.Error(err)
		}
		if !slices.Contains(operations, request.GetOperationId()) {
			operations = append(operations, request.GetOperationId())
		}
	})
	return operations
}

// events are the documents of all events that Spark sent, each once, as they are repeated
// under the same response id.
func (w *wire) events(t *testing.T) []string {
	var events []string
	seen := map[string]bool{}
	take := func(c call) {
		for _, answer := range c.answers {
			var response sparkpb.ExecutePlanResponse
			if err := proto.Unmarshal(answer, &response); err != nil {
				t.Error(err)
			}
			if carried := response.GetStreamingQueryListenerEventsResult().GetEvents(); len(carried) > 0 && !seen[response.GetResponseId()] {
				seen[response.GetResponseId()] = true
				for _, event := range carried {
					events = append(events, event.GetEventJson())
				}
			}
		}
	}
	w.each("ExecutePlan", take)
	w.each("ReattachExecute", take)
	return slices.Clip(events)
}

// untouched is a codec for messages that are bytes.
type untouched struct{}

func (untouched) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }

func (untouched) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = slices.Clone(data)
	return nil
}

func (untouched) Name() string { return "untouched" }
