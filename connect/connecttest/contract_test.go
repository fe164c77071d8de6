package connecttest_test

import (
	"context"
	"testing"
	"time"

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
	// fail is a query of the client's session that has failed, or is about to.
	fail(t *testing.T, c *client) *sparkpb.StreamingQueryInstanceId
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
	{"starts are told", startsTold},
	{"lost start", lostStart},
	{"refused start", refusedStart},
	{"same checkpoint", sameCheckpoint},
	{"awaits", awaits},
	{"awaits of a failure", awaitsOfAFailure},
	{"settings", settingsKept},
	{"views and SQL", viewsAndSQL},
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
