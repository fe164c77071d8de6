//go:build integration

package connecttest_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
	"sparkbridge/integration/servers"
)

// real is a Spark Connect server of Apache Spark.
type real struct {
	spark    *servers.Spark
	line     connecttest.Version
	protocol *protoregistry.Files
}

func startReal(t *testing.T, version connecttest.Version) real {
	t.Helper()
	spark, err := servers.StartSpark(t.Context(), servers.SparkOptions{
		Version: string(version), Token: goodToken, Dir: t.TempDir(),
		Conf: map[string]string{
			"spark.connect.execute.reattachable.senderMaxStreamDuration": streamDuration.String(),
			"spark.connect.execute.manager.detachedTimeout":              detachedAfter.String(),
			"spark.connect.execute.manager.maintenanceInterval":          maintenance.String(),
			"spark.connect.execute.reattachable.observerRetryBufferSize": fmt.Sprint(retryBuffer),
			"spark.sql.streaming.stopTimeout":                            "10s",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := spark.Stop(); err != nil {
			t.Errorf("stop Spark: %v", err)
		}
	})
	protocol, err := connecttest.SparkProtocol(t.Context(), spark.Python())
	if err != nil {
		t.Fatal(err)
	}
	return real{spark, version, protocol}
}

func (r real) version() connecttest.Version { return r.line }

func (r real) client(t *testing.T, token string) *client {
	t.Helper()
	conn, err := grpc.NewClient(fmt.Sprintf("passthrough:///127.0.0.1:%d", r.spark.Port()),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithPerRPCCredentials(bearer(token)))
	if err != nil {
		t.Fatal(err)
	}
	c := newClient(t, conn)
	t.Cleanup(func() {
		r.release(c)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// release ends what the test did in its session; whether there is something to end is
// not known here.
func (r real) release(c *client) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, _ = c.rpc.ReleaseSession(ctx, &sparkpb.ReleaseSessionRequest{SessionId: c.session, UserContext: c.context()})
}

// startRate is the start of a query over Spark's rate source, in protobuf's JSON. Our
// own messages have no such command, so it is built from Spark's.
const startRate = `{
  "sessionId": %q, "userContext": {"userId": %q},
  "plan": {"command": {"writeStreamOperationStart": {
    "input": {"read": {"isStreaming": true, "dataSource": {"format": "rate", "options": {"rowsPerSecond": "10"}}}},
    "format": "noop", "outputMode": "append", "queryName": %q,
    "processingTimeInterval": "100 milliseconds", "options": {"checkpointLocation": %q}}}}}`

func (r real) produce(t *testing.T, c *client) {
	t.Helper()
	start, err := connecttest.SparkMessage(r.protocol, "ExecutePlanRequest")
	if err != nil {
		t.Fatal(err)
	}
	request := dynamicpb.NewMessage(start)
	checkpoint := filepath.Join(r.spark.Dir(), "checkpoints", c.session)
	if err := protojson.Unmarshal(fmt.Appendf(nil, startRate, c.session, c.user, queryName, checkpoint), request); err != nil {
		t.Fatal(err)
	}
	frames, err := drain(c.executeAny(t.Context(), request))
	if err != nil {
		t.Fatalf("start query: %v", err)
	}
	for _, frame := range frames {
		if frame.GetWriteStreamOperationStartResult().GetQueryId().GetRunId() != "" {
			return
		}
	}
	t.Fatalf("start query: no start result in %v", frames)
}

func (r real) fail(t *testing.T, c *client) *sparkpb.StreamingQueryInstanceId {
	t.Helper()
	command := rate("failing", "")
	start := command.GetWriteStreamOperationStart()
	start.Input = &sparkpb.Relation{Common: &sparkpb.RelationCommon{}, RelType: &sparkpb.Relation_Project{Project: &sparkpb.Project{
		Input: start.GetInput(),
		Expressions: []*sparkpb.Expression{{ExprType: &sparkpb.Expression_ExpressionString_{
			ExpressionString: &sparkpb.Expression_ExpressionString{Expression: "raise_error('no more')"},
		}}},
	}}}
	return c.start(command).GetQueryId()
}

func (r real) restart(t *testing.T) {
	t.Helper()
	r.spark.Kill()
	if err := r.spark.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestContractOfSpark(t *testing.T) {
	for _, version := range []connecttest.Version{connecttest.Spark42, connecttest.Spark40} {
		t.Run(string(version), func(t *testing.T) {
			w := startReal(t, version)
			t.Run("lines", func(t *testing.T) {
				for _, line := range contract {
					t.Run(line.name, func(t *testing.T) {
						t.Parallel() // each has a session of its own, and most of them only wait
						line.test(t, w)
					})
				}
			})
			t.Run("driver restarts", func(t *testing.T) { driverRestarts(t, w) })
		})
	}
}
