package connecttest

import (
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	"sparkbridge/connect/sparkpb"
)

// operation is one execution: the responses it has made, and who reads them. All of it
// is guarded by the server's mutex.
type operation struct {
	session      *Session
	id           string
	plan         *sparkpb.Plan
	reattachable bool
	silent       bool  // an ADD that lost: it never answers and never ends
	complete     bool  // nothing follows the last response
	failure      error // what follows it, where the operation has failed
	gone         bool  // released or abandoned

	// settle is asked whether an operation that waits is done; over says that due is past.
	settle func(over bool) (settled bool, err error)
	due    time.Time // zero: it waits without end

	// responses are numbered from 1; those up to removed are forgotten, but their
	// numbers are not.
	responses []*sparkpb.ExecutePlanResponse
	numbers   map[string]int
	removed   int

	reader   *reader       // nil while nobody reads
	detached time.Time     // since when nobody does
	changed  chan struct{} // closed when something above has changed
}

func (session *Session) newOperation(id string, plan *sparkpb.Plan, reattachable bool) *operation {
	op := &operation{
		session: session, id: id, plan: plan, reattachable: reattachable,
		numbers: map[string]int{}, detached: time.Now(), changed: make(chan struct{}),
	}
	session.operations[id] = op
	return op
}

// add appends a response and returns its id.
func (op *operation) add(response *sparkpb.ExecutePlanResponse) string {
	response.SessionId = op.session.id
	response.ServerSideSessionId = op.session.serverSide
	response.OperationId = op.id
	response.ResponseId = uuid.NewString()
	op.responses = append(op.responses, response)
	op.numbers[response.GetResponseId()] = op.last()
	op.wake()
	return response.GetResponseId()
}

// addProgress appends the empty report on Spark jobs that means nothing to anybody.
func (op *operation) addProgress() {
	if op.session.server.options.NoExecutionProgress || op.session.server.options.Version == Spark35 {
		return
	}
	op.add(&sparkpb.ExecutePlanResponse{
		ResponseType: &sparkpb.ExecutePlanResponse_ExecutionProgress_{ExecutionProgress: &sparkpb.ExecutePlanResponse_ExecutionProgress{}},
	})
}

// finish says that nothing follows; a reattachable operation has a response for that.
func (op *operation) finish() {
	if op.reattachable {
		op.add(&sparkpb.ExecutePlanResponse{
			ResponseType: &sparkpb.ExecutePlanResponse_ResultComplete_{ResultComplete: &sparkpb.ExecutePlanResponse_ResultComplete{}},
		})
	}
	op.complete = true
	op.wake()
}

func (op *operation) last() int { return op.removed + len(op.responses) }

// wake lets readers look again.
func (op *operation) wake() {
	close(op.changed)
	op.changed = make(chan struct{})
}

// position is the number of the response to read next for a client that has seen the
// named one, or none.
func (op *operation) position(lastResponseID *string) (int, error) {
	server := op.session.server
	next := 1
	if lastResponseID != nil {
		number, known := op.numbers[*lastResponseID]
		if !known {
			return 0, server.handleError(classPositionUnknown, *lastResponseID)
		}
		next = number + 1
	}
	if next <= op.removed {
		return 0, server.handleError(classPositionGone, op.id)
	}
	return next, nil
}

// remove forgets the responses up to and including the numbered one.
func (op *operation) remove(upTo int) {
	for op.removed < upTo && len(op.responses) > 0 {
		op.responses[0] = nil
		op.responses = op.responses[1:]
		op.removed++
	}
}

// trim keeps, of what was sent, the newest responses that fit into the retry buffer.
// What was not sent yet is never in question, and the last that was is kept in any case.
func (op *operation) trim(sent int) {
	kept := 0
	for number := sent; number > op.removed; number-- {
		kept += proto.Size(op.responses[number-op.removed-1])
		if kept > op.session.server.options.RetryBufferBytes && number != sent {
			op.remove(number)
			return
		}
	}
}

// overdue says whether a round of maintenance has found the operation detached for
// longer than is allowed.
func (s *Server) overdue(op *operation) bool {
	if op.reader != nil {
		return false
	}
	since := op.detached.Add(s.options.DetachedTimeout).Sub(s.started)
	rounds := (since + s.options.MaintenanceInterval - 1) / s.options.MaintenanceInterval
	return !time.Now().Before(s.started.Add(rounds * s.options.MaintenanceInterval))
}
