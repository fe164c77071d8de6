package connecttest_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

// The part of the contract about sessions, errors and what a session tells of its queries.

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
	w.produce(t, c)
	running := c.active()[0].GetId()
	for what, line := range map[string]struct {
		id          *sparkpb.StreamingQueryInstanceId
		class, text string
	}{
		"query that never was": {&sparkpb.StreamingQueryInstanceId{Id: c.session, RunId: running.GetRunId()},
			"CONNECT_INVALID_PLAN.STREAMING_QUERY_NOT_FOUND", "Streaming query " + c.session + " is not found"},
		"run that never was": {&sparkpb.StreamingQueryInstanceId{Id: running.GetId(), RunId: c.session},
			"CONNECT_INVALID_PLAN.STREAMING_QUERY_RUN_ID_MISMATCH", "Run id mismatch for query id " + running.GetId() + ". "},
	} {
		if w.version() != connecttest.Spark42 {
			line.class = ""
		}
		_, err := c.ask(line.id)
		if st := status.Convert(err); st.Code() != codes.Internal || class(err) != line.class || !strings.Contains(st.Message(), line.text) {
			t.Errorf("status of a %s: %v (class %q), want class %q and %q", what, err, class(err), line.class, line.text)
		}
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
	always := []string{"classes", "errorClass", "messageParameters", "sqlState"}
	saysAbout(t, c.probe(), "INVALID_HANDLE.SESSION_NOT_FOUND", "HY000", always)
	c.create()
	// The rest of a message is kept in the session, under an id.
	withID := slices.Sorted(slices.Values(append(always, "errorId")))
	_, err := drain(c.reattach(t.Context(), c.session, ""))
	saysAbout(t, err, "INVALID_HANDLE.OPERATION_NOT_FOUND", "HY000", withID)
	b := c.open()
	_, err = drain(c.reattach(t.Context(), b.operation, c.session))
	saysAbout(t, err, "INVALID_CURSOR.POSITION_NOT_FOUND", "HY109", withID)
}

// saysAbout checks everything that an error says beside its text.
func saysAbout(t *testing.T, err error, class, state string, keys []string) {
	t.Helper()
	st := status.Convert(err)
	if st.Code() != codes.Internal || len(st.Details()) != 1 || !strings.HasPrefix(st.Message(), "["+class+"] ") {
		t.Fatalf("got %v with %v, want INTERNAL, [%s] and one detail", err, st.Details(), class)
	}
	said := info(err)
	if got := slices.Sorted(maps.Keys(said)); !slices.Equal(got, keys) {
		t.Errorf("%s: metadata has %v, want %v", class, got, keys)
	}
	if said["errorClass"] != class || said["sqlState"] != state {
		t.Errorf("%s: metadata is %v", class, said)
	}
	if reason := st.Details()[0].(*errdetails.ErrorInfo).GetReason(); reason != "org.apache.spark.SparkSQLException" {
		t.Errorf("%s: reason is %q", class, reason)
	}
}

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
