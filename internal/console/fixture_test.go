package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"sparkbridge/connect"
	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	sessionID = "5b0d2c1e-8f0a-4c53-9a58-7b1f0a4f3e11"
	remote    = "sc://127.0.0.1:15002/;user_id=etl;session_id=" + sessionID
	ordersID  = "0a1b2c3d-0000-4000-8000-000000000001"
	ordersRun = "0a1b2c3d-0000-4000-8000-000000000002"
	otherID   = "0a1b2c3d-0000-4000-8000-000000000003"
	otherRun  = "0a1b2c3d-0000-4000-8000-000000000004"
)

// world is a server in memory with a job's session, and a console on it.
type world struct {
	server   *connecttest.Server
	job      *connecttest.Session
	place    *Server
	session  *connect.Session
	out, err bytes.Buffer
	*Console
}

// inWorld runs a test in time that passes at once. The session has the query orders, and one
// without a name.
func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{server: connecttest.Start(t, connecttest.Options{})}
		var err error
		if w.job, err = w.server.CreateSession("etl", sessionID); err != nil {
			t.Fatal(err)
		}
		w.job.SetQueries(
			connecttest.Query{ID: ordersID, RunID: ordersRun, Name: "orders", Recent: []string{batch(0, ""), batch(1, watermark)}, Plan: "== Physical Plan =="},
			connecttest.Query{ID: otherID, RunID: otherRun, Status: "Initializing sources"},
		)
		w.place = &Server{Remote: remote, Patience: 30 * time.Second, Getenv: func(string) string { return "" }, Client: connect.NewClient(connect.ClientOptions{
			Log:  slog.New(slog.NewTextHandler(t.Output(), nil)),
			Dial: []grpc.DialOption{grpc.WithContextDialer(w.server.Dialer)},
		})}
		if w.session, err = w.place.Attach(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.Console = New(&w.out, &w.err)
		w.zone = time.UTC
		test(t, w)
		if err := w.session.Close(); err != nil {
			t.Error(err)
		}
	})
}

const watermark = `"eventTime":{"watermark":"1999-12-31T23:59:00.000Z"},` +
	`"stateOperators":[{"operatorName":"stateStoreSave","numRowsTotal":10,"numRowsUpdated":2,"numRowsDroppedByWatermark":1,"memoryUsedBytes":4096}],` +
	`"observedMetrics":{"m":{"values":[3],"schema":{"type":"struct","fields":[{"name":"rows","type":"long","nullable":false,"metadata":{}}]}}},`

// batch is a progress document as recent_progress has it. The clock of a test begins at the
// year 2000; batches are of its first seconds.
func batch(n int, more string) string {
	return fmt.Sprintf(`{"id":"%s","runId":"%s","name":"orders","timestamp":"2000-01-01T00:00:%02d.000Z","batchId":%d,"batchDuration":312,`+
		`"durationMs":{"addBatch":200,"getBatch":10,"walCommit":0,"triggerExecution":312},%s`+
		`"sources":[{"description":"RateStreamV2[rowsPerSecond=5]","startOffset":"%d","endOffset":"%d","numInputRows":5,"inputRowsPerSecond":4.96,"processedRowsPerSecond":"NaN"}],`+
		`"sink":{"description":"MemorySink","numOutputRows":5}}`, ordersID, ordersRun, n, n, more, n, n+1)
}

// idle is what stands in recent_progress for a trigger that found nothing.
func idle(second, next int) string {
	return fmt.Sprintf(`{"id":"%s","runId":"%s","name":"orders","timestamp":"2000-01-01T00:00:%02d.000Z","batchId":%d,"batchDuration":0,`+
		`"durationMs":{"latestOffset":0,"triggerExecution":0},"stateOperators":[],`+
		`"sources":[{"description":"x","startOffset":"1","endOffset":"1","numInputRows":0,"inputRowsPerSecond":0.0,"processedRowsPerSecond":0.0}],`+
		`"sink":{"description":"MemorySink","numOutputRows":0}}`, ordersID, ordersRun, second, next)
}

// ends lets orders end, with a failure where message is not empty.
func (w *world) ends(message string) {
	w.job.Change(ordersRun, func(q *connecttest.Query) { q.Stopped, q.Exception = true, message })
}

// shows compares what was printed.
func (w *world) shows(t *testing.T, out, err string) {
	t.Helper()
	if got := w.out.String(); got != out {
		t.Errorf("printed:\n%s\nwant:\n%s", got, out)
	}
	if got := w.err.String(); got != err {
		t.Errorf("said meanwhile:\n%s\nwant:\n%s", got, err)
	}
	w.out.Reset()
	w.err.Reset()
}

// document compares what was printed with JSON, whatever its spaces.
func (w *world) document(t *testing.T, want string) {
	t.Helper()
	var got, wanted bytes.Buffer
	if err := json.Compact(&got, w.out.Bytes()); err != nil {
		t.Fatalf("%v: %s", err, w.out.Bytes())
	}
	if err := json.Compact(&wanted, []byte(want)); err != nil {
		t.Fatal(err)
	}
	if got.String() != wanted.String() {
		t.Errorf("printed:\n%s\nwant:\n%s", &got, &wanted)
	}
	w.out.Reset()
}

// fails demands an error with a text, or none where it is empty.
func fails(t *testing.T, err error, text string) {
	t.Helper()
	switch {
	case text == "" && err != nil:
		t.Errorf("got error %v, want none", err)
	case text != "" && (err == nil || !strings.Contains(err.Error(), text)):
		t.Errorf("got error %v, want one with %q", err, text)
	}
}

// cancelled is a context that ends after a while, as by a signal.
func cancelled(t *testing.T, after time.Duration) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	time.AfterFunc(after, cancel)
	return ctx
}

// releases counts the sessions that were closed on the server.
func (w *world) releases() int {
	return len(connecttest.CallsOf[*sparkpb.ReleaseSessionRequest](w.server))
}
