package connecttest_test

import (
	"testing"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

// The part of the contract about reading on in an operation.

func cleanEnd(t *testing.T, w world) {
	c := w.client(t, goodToken)
	w.produce(t, c)
	b := c.open()
	for range 2 {
		frames := ends(t, "stream", b.stream, "")
		if complete(frames) {
			t.Fatal("a stream that has lasted long enough is not complete")
		}
		if len(frames) > 0 {
			b.last = frames[len(frames)-1].GetResponseId()
		}
		b.stream = c.reattach(t.Context(), b.operation, b.last)
	}
	b.event()
}

// someEvents opens a bus, lets it carry n events, and returns all responses so far.
func someEvents(t *testing.T, w world, c *client, n int) (*bus, []*sparkpb.ExecutePlanResponse) {
	t.Helper()
	w.produce(t, c)
	b := c.open()
	for n > 0 {
		frame := b.next()
		n -= len(frame.GetStreamingQueryListenerEventsResult().GetEvents())
	}
	return b, b.read
}

func oneEventAResponse(t *testing.T, w world) {
	_, frames := someEvents(t, w, w.client(t, goodToken), 2)
	seen := map[string]bool{}
	for _, frame := range frames {
		if seen[frame.GetResponseId()] {
			t.Errorf("response id %s came twice", frame.GetResponseId())
		}
		seen[frame.GetResponseId()] = true
		for i, e := range frame.GetStreamingQueryListenerEventsResult().GetEvents() {
			if i > 0 || e.GetEventType() != sparkpb.StreamingQueryEventType_QUERY_PROGRESS_EVENT || e.GetEventJson()[:13] != `{"progress":{` {
				t.Errorf("event %d of a response is %v", i, e)
			}
		}
	}
}

func replayIdentical(t *testing.T, w world) {
	c := w.client(t, goodToken)
	b, frames := someEvents(t, w, c, 2)
	for from := range frames {
		again := &bus{client: c, operation: b.operation}
		if from > 0 {
			again.last = frames[from-1].GetResponseId()
		}
		again.stream = c.reattach(t.Context(), b.operation, again.last)
		for i, want := range frames[from:] {
			if got := again.next(); !proto.Equal(got, want) {
				t.Fatalf("replay from %d: response %d is %v, want %v", from, i, got, want)
			}
		}
	}
}

func releaseUntil(t *testing.T, w world) {
	c := w.client(t, goodToken)
	b, frames := someEvents(t, w, c, 2)
	before, at := frames[len(frames)-3].GetResponseId(), frames[len(frames)-2].GetResponseId()
	if err := c.releaseUntil(b.operation, at); err != nil {
		t.Fatal(err)
	}
	for name, last := range map[string]string{"the first response": "", "a released position": before} {
		ends(t, name, c.reattach(t.Context(), b.operation, last), "INVALID_CURSOR.POSITION_NOT_AVAILABLE")
	}
	ends(t, "ADD repeated after a release", c.execute(t.Context(), b.operation, addCommand()), "INVALID_CURSOR.POSITION_NOT_AVAILABLE")
	for range 2 {
		if err := c.releaseUntil(b.operation, before); err != nil {
			t.Errorf("release of what is released: %v", err)
		}
	}
	if got := receive(t, c.reattach(t.Context(), b.operation, at)); !proto.Equal(got, frames[len(frames)-1]) {
		t.Errorf("behind the released response comes %v, want %v", got, frames[len(frames)-1])
	}
}

func unknownPosition(t *testing.T, w world) {
	c := w.client(t, goodToken)
	b := c.open()
	ends(t, "reattach behind an unknown response", c.reattach(t.Context(), b.operation, uuid.NewString()), "INVALID_CURSOR.POSITION_NOT_FOUND")
	expect(t, "release until an unknown response", c.releaseUntil(b.operation, uuid.NewString()), "INVALID_CURSOR.POSITION_NOT_FOUND")
}

func retryBufferTrimmed(t *testing.T, w world) {
	c := w.client(t, goodToken)
	b, frames := someEvents(t, w, c, 40)
	ends(t, "the first response", c.reattach(t.Context(), b.operation, ""), "INVALID_CURSOR.POSITION_NOT_AVAILABLE")
	size, oldest := 0, len(frames)
	for size < retryBuffer*3/4 {
		oldest--
		size += proto.Size(frames[oldest])
	}
	stream := c.reattach(t.Context(), b.operation, frames[oldest-1].GetResponseId())
	for _, want := range frames[oldest:] {
		if got := receive(t, stream); got.GetResponseId() != want.GetResponseId() {
			t.Fatalf("replay of what fits into the buffer: %v, want %v", got, want)
		}
	}
}

func secondReader(t *testing.T, w world) {
	c := w.client(t, goodToken)
	w.produce(t, c)
	b := c.open()
	first := b.stream
	b.stream = c.reattach(t.Context(), b.operation, b.last)
	ends(t, "the first reader", first, "INVALID_CURSOR.DISCONNECTED")
	b.event()
}

func releaseWhileRead(t *testing.T, w world) {
	c := w.client(t, goodToken)
	b := c.open()
	expect(t, "release of an operation that is read", c.releaseAll(b.operation), "")
	ends(t, "its reader", b.stream, "INVALID_CURSOR.DISCONNECTED")
}

func releasedOperation(t *testing.T, w world) {
	c := w.client(t, goodToken)
	ends(t, "reattach to an operation that never was", c.reattach(t.Context(), uuid.NewString(), ""), "INVALID_HANDLE.SESSION_NOT_FOUND")
	b := c.open()
	ends(t, "reattach to an operation that never was", c.reattach(t.Context(), uuid.NewString(), ""), "INVALID_HANDLE.OPERATION_NOT_FOUND")
	c.remove()
	ends(t, "bus", b.stream, "")
	expect(t, "release", c.releaseAll(b.operation), "")
	ends(t, "reattach to a released operation", c.reattach(t.Context(), b.operation, ""), "INVALID_HANDLE.OPERATION_NOT_FOUND")
	again := c.execute(t.Context(), b.operation, addCommand())
	if w.version() == connecttest.Spark42 {
		ends(t, "ADD under a released id", again, "INVALID_HANDLE.OPERATION_ABANDONED")
	} else if frame := receive(t, again); frame.GetResponseId() == b.first.GetResponseId() {
		t.Errorf("ADD under a released id got the old answer %v", frame)
	}
}

func releaseOfNothing(t *testing.T, w world) {
	c := w.client(t, goodToken)
	b := c.open()
	_, err := c.rpc.ReleaseExecute(t.Context(), c.release(b.operation))
	if status.Code(err) != codes.Internal {
		t.Errorf("release of neither all nor a part: %v, want INTERNAL", err)
	}
	expect(t, "release of an operation that is not known", c.releaseUntil(uuid.NewString(), uuid.NewString()), "")
}
