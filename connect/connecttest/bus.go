package connecttest

import (
	"sparkbridge/connect/sparkpb"
)

// slot is the one place of a session for a listener bus.
type slot struct {
	taken bool
	// operation is read by the client that holds the bus. A taken slot without one is
	// a zombie: the listener is registered, and what it hears is lost.
	operation *operation
}

// Emitted is an event that was put on the bus of a session.
type Emitted struct {
	Type sparkpb.StreamingQueryEventType
	JSON string
	// OperationID and ResponseID say which response carries it; both are empty when
	// nobody held the bus, or a zombie did: the event is lost then.
	OperationID, ResponseID string
}

// Progress puts a progress event on the bus. json is the object that Spark wraps:
// the progress itself, without the wrapper.
func (session *Session) Progress(json string) Emitted {
	return session.Emit(sparkpb.StreamingQueryEventType_QUERY_PROGRESS_EVENT, `{"progress":`+json+`}`)
}

// Idle puts an idle event on the bus.
func (session *Session) Idle(json string) Emitted {
	return session.Emit(sparkpb.StreamingQueryEventType_QUERY_IDLE_EVENT, json)
}

// Terminated puts a terminated event on the bus.
func (session *Session) Terminated(json string) Emitted {
	return session.Emit(sparkpb.StreamingQueryEventType_QUERY_TERMINATED_EVENT, json)
}

// Emit puts an event of any type on the bus, its JSON as it is.
func (session *Session) Emit(kind sparkpb.StreamingQueryEventType, json string) Emitted {
	session.server.mu.Lock()
	defer session.server.mu.Unlock()
	session.maintain()
	return session.emit(kind, json)
}

func (session *Session) emit(kind sparkpb.StreamingQueryEventType, json string) Emitted {
	e := Emitted{Type: kind, JSON: json}
	carried := &sparkpb.StreamingQueryListenerEventsResult{
		Events: []*sparkpb.StreamingQueryListenerEvent{{EventJson: json, EventType: kind}},
	}
	if op := session.slot.operation; op != nil {
		e.OperationID = op.id
		e.ResponseID = op.add(events(carried))
	}
	for _, op := range session.twins {
		op.add(events(carried))
	}
	session.emitted = append(session.emitted, e)
	return e
}

// Emitted is everything that was put on the bus so far, in order.
func (session *Session) Emitted() []Emitted {
	session.server.mu.Lock()
	defer session.server.mu.Unlock()
	return append([]Emitted(nil), session.emitted...)
}

// Holder is the operation that holds the bus. It is empty, and taken true, when a
// zombie does or the bus was taken by HoldBus.
func (session *Session) Holder() (operationID string, taken bool) {
	session.server.mu.Lock()
	defer session.server.mu.Unlock()
	session.maintain()
	if op := session.slot.operation; op != nil {
		return op.id, true
	}
	return "", session.slot.taken
}

// HoldBus takes the free slot as the job's own client does with addListener, and says
// whether it was free. What is emitted then reaches that client, which is not played.
func (session *Session) HoldBus() bool {
	session.server.mu.Lock()
	defer session.server.mu.Unlock()
	free := !session.slot.taken
	session.slot.taken = true
	return free
}

// RemoveBus is a REMOVE by another client: it ends whoever holds the bus.
func (session *Session) RemoveBus() {
	session.server.mu.Lock()
	defer session.server.mu.Unlock()
	session.freeSlot()
}

// LetNextAddRace lets the next ADD be acknowledged though the bus is taken, as happens
// to two that arrive at the same moment: about one in ten pairs on the real server.
// Both get all events then, and a REMOVE ends only the one that came first; the other
// lasts as long as its operation or the session.
func (session *Session) LetNextAddRace() {
	session.server.mu.Lock()
	defer session.server.mu.Unlock()
	session.racing = true
}

// addBus is the ADD command. The second of a session is accepted and never answered,
// even when the first has gone: the real server just forgets to say anything.
func (session *Session) addBus(op *operation) {
	switch {
	case !session.slot.taken:
		session.slot = slot{taken: true, operation: op}
	case session.racing:
		session.twins = append(session.twins, op)
	default:
		op.silent = true
		return
	}
	session.racing = false
	if session.server.options.SlowAdd {
		op.addProgress()
	}
	added := true
	op.add(events(&sparkpb.StreamingQueryListenerEventsResult{ListenerBusListenerAdded: &added}))
	op.addProgress()
}

// freeSlot is the REMOVE command: the holder's operation is complete.
func (session *Session) freeSlot() {
	if op := session.slot.operation; op != nil {
		op.finish()
	}
	session.slot = slot{}
}

func events(result *sparkpb.StreamingQueryListenerEventsResult) *sparkpb.ExecutePlanResponse {
	return &sparkpb.ExecutePlanResponse{
		ResponseType: &sparkpb.ExecutePlanResponse_StreamingQueryListenerEventsResult{StreamingQueryListenerEventsResult: result},
	}
}
