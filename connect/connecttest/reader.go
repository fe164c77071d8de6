package connecttest

import (
	"context"
	"errors"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	"sparkbridge/connect/sparkpb"
)

// maxStreamBytes is how much one stream carries before it ends, whatever the time.
const maxStreamBytes = 1 << 30

// reader is one RPC that reads an operation.
type reader struct {
	operation *operation
	next      int       // number of the response to send next
	bytes     int       // sent so far
	deadline  time.Time // when the stream ends although the operation does not
}

// attach makes a reader the operation's one reader. An earlier one is told to leave.
func (op *operation) attach(next int) *reader {
	r := &reader{operation: op, next: next, deadline: time.Now().Add(op.session.server.options.SenderMaxStreamDuration)}
	op.reader = r
	op.wake()
	return r
}

// run sends responses until the operation is complete, the stream has lasted long
// enough, another reader has come, or the client has gone.
func (r *reader) run(ctx context.Context, send func(*sparkpb.ExecutePlanResponse) error) error {
	timer := time.NewTimer(time.Until(r.deadline))
	defer timer.Stop()
	due := time.NewTimer(time.Until(r.operation.due))
	defer due.Stop()
	for {
		response, changed, err := r.take()
		if err != nil {
			return r.leave(time.Now(), err)
		}
		if response != nil {
			if err := send(response); err != nil {
				return r.leave(r.deadline, err)
			}
			continue
		}
		select {
		case <-ctx.Done():
			// The real server finds out only when the stream would have ended.
			return r.leave(r.deadline, ctx.Err())
		case <-timer.C:
		case <-due.C:
		case <-changed:
		}
	}
}

// take returns the next response if there is one, else a channel that is closed when
// it is worth asking again. io.EOF means that the stream ends here.
func (r *reader) take() (*sparkpb.ExecutePlanResponse, <-chan struct{}, error) {
	op, server := r.operation, r.operation.session.server
	server.mu.Lock()
	defer server.mu.Unlock()
	op.look()
	switch {
	case op.reader != r || op.gone:
		return nil, nil, server.handleError(classDisconnected, op.id)
	case op.reattachable && (!time.Now().Before(r.deadline) || r.bytes >= maxStreamBytes):
		return nil, nil, io.EOF
	case r.next <= op.removed:
		return nil, nil, server.handleError(classPositionGone, op.id)
	case r.next <= op.last():
		response := op.responses[r.next-op.removed-1]
		op.trim(r.next)
		r.next++
		r.bytes += proto.Size(response)
		return response, nil, nil
	case op.failure != nil:
		return nil, nil, op.failure
	case op.complete:
		return nil, nil, io.EOF
	}
	return nil, op.changed, nil
}

// leave ends the reading; since is when the server takes note of it. An operation that
// cannot be resumed ends with it.
func (r *reader) leave(since time.Time, err error) error {
	op := r.operation
	op.session.server.mu.Lock()
	defer op.session.server.mu.Unlock()
	if op.reader == r {
		op.reader, op.detached = nil, since
		if !op.reattachable {
			op.session.discard(op)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
