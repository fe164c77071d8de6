package connecttest_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// The part of the contract about who holds the bus of a session.

func addAcknowledged(t *testing.T, w world) {
	c := w.client(t, goodToken)
	b := c.open()
	if first := b.first; first.GetOperationId() != b.operation || first.GetResponseId() == "" || first.GetServerSideSessionId() == "" || first.GetSessionId() != c.session {
		t.Errorf("acknowledgement lacks an id: %v", first)
	}
	frames := ends(t, "idle bus", b.stream, "")
	for _, frame := range frames {
		if frame.GetExecutionProgress() == nil {
			t.Errorf("idle bus sent %v", frame)
		}
	}
}

func secondAddSilent(t *testing.T, w world) {
	c := w.client(t, goodToken)
	c.open()
	operation, stream := c.add(t.Context())
	silent(t, "second ADD", stream)
	c.remove()
	silent(t, "second ADD after the holder has gone", c.reattach(t.Context(), operation, ""))
	if err := c.releaseAll(operation); status.Code(err) != codes.Internal {
		t.Errorf("first release of a silent ADD: %v, want INTERNAL", err)
	}
	expect(t, "second release of a silent ADD", c.releaseAll(operation), "")
	c.open()
}

func silentAddBlocksRelease(t *testing.T, w world) {
	c := w.client(t, goodToken)
	c.open()
	operation, stream := c.add(t.Context())
	silent(t, "second ADD", stream)
	if err := c.releaseSession(); status.Code(err) != codes.Internal {
		t.Errorf("release of a session with a silent ADD: %v, want INTERNAL", err)
	}
	_ = c.releaseAll(operation) // fails by design, see secondAddSilent
}

func removeEndsHolder(t *testing.T, w world) {
	c := w.client(t, goodToken)
	holder := c.open()
	c.remove()
	if frames := ends(t, "holder after a REMOVE", holder.stream, ""); !complete(frames) {
		t.Errorf("holder after a REMOVE got %v, want result_complete", frames)
	}
	expect(t, "release of a completed ADD", c.releaseAll(holder.operation), "")
	c.open()
}

func removeWithoutBus(t *testing.T, w world) {
	c := w.client(t, goodToken)
	c.remove()
	c.remove()
	c.open()
}

func zombieAfterRelease(t *testing.T, w world) {
	c := w.client(t, goodToken)
	holder := c.open()
	expect(t, "release of the bus", c.releaseAll(holder.operation), "")
	_, next := c.add(t.Context())
	silent(t, "ADD beside a zombie", next)
	c.remove()
	c.open()
}

func zombieAfterCancel(t *testing.T, w world) {
	c := w.client(t, goodToken)
	ctx, cancel := context.WithCancel(t.Context())
	receive(t, c.execute(ctx, "", addCommand()))
	cancel()
	_, next := c.add(t.Context())
	silent(t, "ADD beside a zombie", next)
	c.remove()
	c.open()
}

func abandoned(t *testing.T, w world) {
	c := w.client(t, goodToken)
	holder := c.open()
	operation := holder.operation
	ends(t, "bus", holder.stream, "")
	// Each look attaches again, so it must be long enough after the last.
	eventually(t, "operation is abandoned", func() bool {
		time.Sleep(detachedAfter + 3*maintenance)
		_, err := drain(c.reattach(t.Context(), operation, ""))
		return class(err) == "INVALID_HANDLE.OPERATION_ABANDONED"
	})
	ends(t, "ADD with the id of an abandoned one", c.execute(t.Context(), operation, addCommand()), "INVALID_HANDLE.OPERATION_ABANDONED")
	expect(t, "release of an abandoned operation", c.releaseAll(operation), "")
	_, next := c.add(t.Context())
	silent(t, "ADD beside a zombie", next)
	c.remove()
	c.open()
}

func addRepeated(t *testing.T, w world) {
	c := w.client(t, goodToken)
	b := c.open()
	again := c.execute(t.Context(), b.operation, addCommand())
	if repeated := receive(t, again); !proto.Equal(repeated, b.read[0]) {
		t.Errorf("ADD repeated under its id answered %v, want %v", repeated, b.read[0])
	}
	ends(t, "the first reader", b.stream, "INVALID_CURSOR.DISCONNECTED")
}

func sameIDOtherPlan(t *testing.T, w world) {
	c := w.client(t, goodToken)
	b := c.open()
	ends(t, "another plan under the same id", c.execute(t.Context(), b.operation, removeCommand()), "INVALID_HANDLE.OPERATION_ALREADY_EXISTS")
}

// The real server completes the bus, unless it is too busy and disconnects it first.
func closeEndsBus(t *testing.T, w world) {
	c := w.client(t, goodToken)
	b := c.open()
	expect(t, "release of the session", c.releaseSession(), "")
	frames, err := drain(b.stream)
	if class(err) != "INVALID_CURSOR.DISCONNECTED" && (err != nil || !complete(frames)) {
		t.Errorf("bus of a closed session got %v, %v, want result_complete", frames, err)
	}
	ends(t, "reattach in a closed session", c.reattach(t.Context(), b.operation, b.last), "INVALID_HANDLE.SESSION_CLOSED")
}
