package connecttest_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

// The settings of every server that the contract runs against, short enough to see
// them take effect on a real one.
const (
	streamDuration = 3 * time.Second
	detachedAfter  = 5 * time.Second
	maintenance    = time.Second
	retryBuffer    = 16 << 10
)

// A world is a Spark Connect server of which a test of the contract knows nothing but
// what a client can see.
type world interface {
	version() connecttest.Version
	// client is a client of a session of its own, which does not exist yet. It shows
	// the token, which is goodToken.
	client(t *testing.T, token string) *client
	// produce lets a query of the client's session make progress, again and again,
	// until the test ends.
	produce(t *testing.T, c *client)
}

// restartable is a world that a test may restart, as a driver is that has died: its
// sessions are lost, the address stays.
type restartable interface {
	world
	restart(t *testing.T)
}

const goodToken = "let me in"

// contract is how a Spark Connect server behaves: each line runs against the real one
// of every version and against the one that is played here.
var contract = []struct {
	name string
	test func(t *testing.T, w world)
}{
	{"probe", probeAnswers},
	{"probe does not create", probeDoesNotCreate},
	{"execute creates the session", executeCreates},
	{"a closed session stays closed", closedStaysClosed},
	{"ids are UUIDs", idsAreUUIDs},
	{"add is acknowledged first", addAcknowledged},
	{"second add is silent", secondAddSilent},
	{"silent add keeps the session open", silentAddBlocksRelease},
	{"remove ends the holder", removeEndsHolder},
	{"remove without a bus", removeWithoutBus},
	{"zombie after release", zombieAfterRelease},
	{"zombie after cancel", zombieAfterCancel},
	{"abandoned", abandoned},
	{"lost add repeated", addRepeated},
	{"same id for another plan", sameIDOtherPlan},
	{"closing the session ends the bus", closeEndsBus},
	{"clean end", cleanEnd},
	{"replay is identical", replayIdentical},
	{"release until", releaseUntil},
	{"unknown position", unknownPosition},
	{"retry buffer", retryBufferTrimmed},
	{"second reader", secondReader},
	{"release reading", releaseWhileRead},
	{"released operation", releasedOperation},
	{"release of nothing", releaseOfNothing},
	{"events", oneEventAResponse},
	{"active queries", activeQueries},
	{"unknown query", unknownQuery},
	{"observed session id", observedSessionID},
	{"token", tokenDemanded},
	{"details of an error", errorDetails},
}

func fakeOptions() connecttest.Options {
	return connecttest.Options{
		SenderMaxStreamDuration: streamDuration, DetachedTimeout: detachedAfter, MaintenanceInterval: maintenance,
		RetryBufferBytes: retryBuffer, Token: goodToken,
	}
}

// expect fails the test unless err has Spark's error class; empty means no error.
func expect(t *testing.T, what string, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && class(err) != want {
		t.Errorf("%s: %v (class %q), want class %q", what, err, class(err), want)
	}
}

// ends reads a stream to its end and expects an error class; empty means a clean end.
func ends(t *testing.T, what string, stream responses, want string) []*sparkpb.ExecutePlanResponse {
	t.Helper()
	frames, err := drain(stream)
	expect(t, what, err, want)
	return frames
}

// silent reads a stream until its duration is over, and expects nothing but that.
func silent(t *testing.T, what string, stream responses) {
	t.Helper()
	if frames := ends(t, what, stream, ""); len(frames) > 0 {
		t.Errorf("%s: got %v, want silence", what, frames)
	}
}

func complete(frames []*sparkpb.ExecutePlanResponse) bool {
	return len(frames) > 0 && frames[len(frames)-1].GetResultComplete() != nil
}

func probeAnswers(t *testing.T, w world) {
	c := w.client(t, goodToken)
	expect(t, "probe of a session that never was", c.probe(), "INVALID_HANDLE.SESSION_NOT_FOUND")
	c.create()
	expect(t, "probe of a session", c.probe(), "")
	expect(t, "release of a session", c.releaseSession(), "")
	expect(t, "probe of a closed session", c.probe(), "INVALID_HANDLE.SESSION_CLOSED")
}

func probeDoesNotCreate(t *testing.T, w world) {
	c := w.client(t, goodToken)
	for range 2 {
		expect(t, "probe", c.probe(), "INVALID_HANDLE.SESSION_NOT_FOUND")
	}
	ends(t, "reattach without a session", c.reattach(t.Context(), c.session, ""), "INVALID_HANDLE.SESSION_NOT_FOUND")
	expect(t, "probe", c.probe(), "INVALID_HANDLE.SESSION_NOT_FOUND")
}

func executeCreates(t *testing.T, w world) {
	c := w.client(t, goodToken)
	c.remove()
	expect(t, "probe after a command", c.probe(), "")
}

func closedStaysClosed(t *testing.T, w world) {
	c := w.client(t, goodToken)
	c.create()
	expect(t, "release of a session", c.releaseSession(), "")
	expect(t, "release of a closed session", c.releaseSession(), "")
	_, stream := c.add(t.Context())
	ends(t, "ADD in a closed session", stream, "INVALID_HANDLE.SESSION_CLOSED")
	_, err := c.rpc.AnalyzePlan(t.Context(), c.analyze())
	expect(t, "creating a closed session", err, "INVALID_HANDLE.SESSION_CLOSED")
}

func idsAreUUIDs(t *testing.T, w world) {
	c := w.client(t, goodToken)
	ends(t, "operation id", c.execute(t.Context(), "op", addCommand()), "INVALID_HANDLE.FORMAT")
	c.session = "etl"
	_, stream := c.add(t.Context())
	ends(t, "session id", stream, "INVALID_HANDLE.FORMAT")
	expect(t, "probe of a session id that is none", c.probe(), "INVALID_HANDLE.SESSION_NOT_FOUND")
}

func observedSessionID(t *testing.T, w world) {
	c := w.client(t, goodToken)
	id := c.create()
	c.observed = &id
	expect(t, "probe with the right id", c.probe(), "")
	wrong := id[:len(id)-1] + "x"
	c.observed = &wrong
	expect(t, "probe with a wrong id, which is not looked at", c.probe(), "")
	operation, stream := c.add(t.Context())
	ends(t, "ADD with a wrong id", stream, "INVALID_HANDLE.SESSION_CHANGED")
	ends(t, "reattach with a wrong id", c.reattach(t.Context(), operation, ""), "INVALID_HANDLE.SESSION_CHANGED")
	missing := w.client(t, goodToken)
	missing.observed = &id
	_, stream = missing.add(t.Context())
	ends(t, "ADD with an id in a session that is not there", stream, "INVALID_HANDLE.SESSION_CHANGED")
	missing.observed = nil
	expect(t, "probe after that", missing.probe(), "")
}

func activeQueries(t *testing.T, w world) {
	c := w.client(t, goodToken)
	if active := c.active(); len(active) != 0 {
		t.Errorf("active queries of a new session: %v", active)
	}
	w.produce(t, c)
	active := c.active()
	if len(active) != 1 || active[0].GetId().GetRunId() == "" || active[0].GetName() != queryName {
		t.Fatalf("active queries: %v, want one named %s", active, queryName)
	}
	result, err := c.ask(active[0].GetId())
	if err != nil || result.GetStatus().GetStatusMessage() == "" || !result.GetStatus().GetIsActive() {
		t.Errorf("status of a query that runs: %v, %v", result, err)
	}
}

func unknownQuery(t *testing.T, w world) {
	c := w.client(t, goodToken)
	c.create()
	_, err := c.ask(&sparkpb.StreamingQueryInstanceId{Id: c.session, RunId: c.session})
	if err == nil {
		t.Fatal("a query that never was has a status")
	}
	if class := class(err); class != "" && class != "CONNECT_INVALID_PLAN.STREAMING_QUERY_NOT_FOUND" {
		t.Errorf("status of a query that never was: %v (class %q)", err, class)
	}
}

func tokenDemanded(t *testing.T, w world) {
	for token, want := range map[string]string{
		"": "No authentication token provided", "guess": "Invalid authentication token",
	} {
		c := w.client(t, token)
		_, stream := c.add(t.Context())
		_, streamed := drain(stream)
		for method, err := range map[string]error{"probe": c.probe(), "ADD": streamed} {
			if got := status.Convert(err); got.Code() != codes.Unauthenticated || got.Message() != want || len(got.Details()) > 0 {
				t.Errorf("%s with token %q: %v, want UNAUTHENTICATED %q without details", method, token, err, want)
			}
		}
	}
}

func errorDetails(t *testing.T, w world) {
	c := w.client(t, goodToken)
	err := c.probe()
	if st := status.Convert(err); st.Code() != codes.Internal || len(st.Details()) != 1 {
		t.Fatalf("probe: %v with %v, want INTERNAL with one detail", err, st.Details())
	}
	if got := status.Convert(err).Details()[0].(*errdetails.ErrorInfo).GetReason(); got != "org.apache.spark.SparkSQLException" {
		t.Errorf("reason is %q", got)
	}
	said := info(err)
	if got := slices.Sorted(maps.Keys(said)); !slices.Equal(got, []string{"classes", "errorClass", "errorId", "messageParameters", "sqlState"}) {
		t.Errorf("metadata has %v", got)
	}
	if uuid.Validate(said["errorId"]) != nil || said["sqlState"] != sessionState[w.version()] {
		t.Errorf("metadata is %v", said)
	}
	if !strings.HasPrefix(status.Convert(err).Message(), "[INVALID_HANDLE.SESSION_NOT_FOUND] ") {
		t.Errorf("message is %q", err)
	}
}

// sessionState is the SQLSTATE of errors about sessions: nothing to build on.
var sessionState = map[connecttest.Version]string{connecttest.Spark42: "08003", connecttest.Spark40: "HY000"}

// driverRestarts is a line of the contract too; it ends every session of its world.
func driverRestarts(t *testing.T, w restartable) {
	c := w.client(t, goodToken)
	b := c.open()
	observed := b.first.GetServerSideSessionId()
	w.restart(t)
	if _, err := drain(b.stream); status.Code(err) != codes.Unavailable {
		t.Errorf("bus of a driver that has died: %v, want UNAVAILABLE", err)
	}
	eventually(t, "the driver answers again", func() bool { return status.Code(c.probe()) != codes.Unavailable })
	expect(t, "probe", c.probe(), "INVALID_HANDLE.SESSION_NOT_FOUND")
	ends(t, "reattach", c.reattach(t.Context(), b.operation, b.last), "INVALID_HANDLE.SESSION_NOT_FOUND")
	if again := c.create(); again == observed {
		t.Errorf("the session was made again with its old server-side id %s", again)
	}
	ends(t, "reattach in the new session", c.reattach(t.Context(), b.operation, b.last), "INVALID_HANDLE.OPERATION_NOT_FOUND")
	c.observed = &observed
	ends(t, "reattach with the old server-side id", c.reattach(t.Context(), b.operation, b.last), "INVALID_HANDLE.SESSION_CHANGED")
}

// eventually repeats a question until it is answered as wanted: what a real server does
// on its own time cannot be waited for by a signal.
func eventually(t *testing.T, what string, answered func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !answered() {
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not within a minute", what)
		case <-time.After(200 * time.Millisecond):
		}
	}
}
