package connecttest

import (
	"time"

	"google.golang.org/protobuf/proto"

	"sparkbridge/connect/sparkpb"
)

// Call is one call of a method that reached the server, whatever came of it.
type Call struct {
	Method  string // full path, such as sparkpb.ExecutePlanMethod
	At      time.Time
	Request proto.Message
}

// note logs a call and takes the fault that waits for it. done must follow.
func (s *Server) note(method string, in proto.Message) (fault Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight++
	s.calls = append(s.calls, Call{Method: method, At: time.Now(), Request: in})
	if waiting := s.faults[method]; len(waiting) > 0 {
		fault, s.faults[method] = waiting[0], waiting[1:]
	}
	return fault
}

func (s *Server) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inFlight--
}

// Calls is every call so far, in the order of arrival, over restarts too.
func (s *Server) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Call(nil), s.calls...)
}

// CallsOf are the requests of one type so far, such as *sparkpb.ReattachExecuteRequest.
func CallsOf[Request proto.Message](s *Server) []Request {
	var found []Request
	for _, call := range s.Calls() {
		if in, ok := call.Request.(Request); ok {
			found = append(found, in)
		}
	}
	return found
}

// Adds counts the ADD commands so far, repeats of a lost one among them.
func (s *Server) Adds() int {
	return s.count(func(c *sparkpb.StreamingQueryListenerBusCommand) bool { return c.GetAddListenerBusListener() })
}

// Removes counts the REMOVE commands so far.
func (s *Server) Removes() int {
	return s.count(func(c *sparkpb.StreamingQueryListenerBusCommand) bool { return c.GetRemoveListenerBusListener() })
}

func (s *Server) count(wanted func(*sparkpb.StreamingQueryListenerBusCommand) bool) (n int) {
	for _, in := range CallsOf[*sparkpb.ExecutePlanRequest](s) {
		if wanted(in.GetPlan().GetCommand().GetStreamingQueryListenerBusCommand()) {
			n++
		}
	}
	return n
}

// Reattaches counts the calls of ReattachExecute so far.
func (s *Server) Reattaches() int { return len(CallsOf[*sparkpb.ReattachExecuteRequest](s)) }

// ReleasedUntil are the response ids that clients released an operation up to, in order.
func (s *Server) ReleasedUntil(operationID string) []string {
	var ids []string
	for _, in := range CallsOf[*sparkpb.ReleaseExecuteRequest](s) {
		if until := in.GetReleaseUntil(); until != nil && in.GetOperationId() == operationID {
			ids = append(ids, until.GetResponseId())
		}
	}
	return ids
}
