package connect

import (
	"context"
	"errors"

	"sparkbridge/connect/sparkpb"
)

func (s *Session) addRequest(op string) *sparkpb.ExecutePlanRequest {
	return s.reattachable(op, planOf(&sparkpb.Command{CommandType: &sparkpb.Command_StreamingQueryListenerBusCommand{
		StreamingQueryListenerBusCommand: &sparkpb.StreamingQueryListenerBusCommand{
			Command: &sparkpb.StreamingQueryListenerBusCommand_AddListenerBusListener{AddListenerBusListener: true},
		},
	}}))
}

// reattachable runs a plan as an operation that outlives the connection.
func (s *Session) reattachable(op string, plan *sparkpb.Plan) *sparkpb.ExecutePlanRequest {
	r := s.executeRequest(plan)
	r.OperationId = &op
	r.RequestOptions = []*sparkpb.ExecutePlanRequest_RequestOption{{
		RequestOption: &sparkpb.ExecutePlanRequest_RequestOption_ReattachOptions{
			ReattachOptions: &sparkpb.ReattachOptions{Reattachable: true},
		},
	}}
	return r
}

func (s *Session) reattachRequest(op, last string) *sparkpb.ReattachExecuteRequest {
	r := &sparkpb.ReattachExecuteRequest{
		SessionId:                         s.ID(),
		ClientObservedServerSideSessionId: s.observedID(),
		UserContext:                       s.user(),
		OperationId:                       op,
		ClientType:                        &s.clientType,
	}
	if last != "" {
		r.LastResponseId = &last
	}
	return r
}

// removeListener removes the listener of the session, whoever's it is, unless gone
// tells that it has ended already: repeating it then could hit the next owner's. A
// session or bus that is not there needs nothing.
func (s *Session) removeListener(ctx context.Context, gone <-chan struct{}) error {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := make(chan struct{})
	watcher := make(chan struct{})
	go func() {
		defer close(watcher)
		select {
		case <-gone:
			cancel()
		case <-stop:
		}
	}()
	err := s.run(asking, "remove listener bus", &sparkpb.Command{CommandType: &sparkpb.Command_StreamingQueryListenerBusCommand{
		StreamingQueryListenerBusCommand: &sparkpb.StreamingQueryListenerBusCommand{
			Command: &sparkpb.StreamingQueryListenerBusCommand_RemoveListenerBusListener{RemoveListenerBusListener: true},
		},
	}}, func(*sparkpb.ExecutePlanResponse) {})
	close(stop)
	<-watcher
	switch {
	case asking.Err() != nil && ctx.Err() == nil, errors.Is(err, ErrSessionNotFound),
		errors.Is(err, ErrSessionClosed), errors.Is(err, ErrSessionChanged):
		return nil
	}
	return err
}

// RemoveListener frees the listener bus of the session, whoever holds it: the
// listeners of another client get no event any more, for the life of that client.
func (s *Session) RemoveListener(ctx context.Context) error {
	return s.removeListener(ctx, nil)
}
