package connecttest

import (
	"context"

	"github.com/google/uuid"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"sparkbridge/connect/sparkpb"
)

// service is the server as gRPC sees it.
type service struct{ *Server }

type frames = grpc.ServerStreamingServer[sparkpb.ExecutePlanResponse]

func (s service) ExecutePlan(in *sparkpb.ExecutePlanRequest, out frames) error {
	return stream(s.Server, sparkpb.ExecutePlanMethod, in, out, s.execute)
}

func (s service) ReattachExecute(in *sparkpb.ReattachExecuteRequest, out frames) error {
	return stream(s.Server, sparkpb.ReattachExecuteMethod, in, out, s.reattach)
}

func (s service) ReleaseExecute(ctx context.Context, in *sparkpb.ReleaseExecuteRequest) (*sparkpb.ReleaseExecuteResponse, error) {
	return unary(ctx, s.Server, sparkpb.ReleaseExecuteMethod, in, s.release)
}

func (s service) AnalyzePlan(ctx context.Context, in *sparkpb.AnalyzePlanRequest) (*sparkpb.AnalyzePlanResponse, error) {
	return unary(ctx, s.Server, sparkpb.AnalyzePlanMethod, in, s.analyze)
}

func (s service) ReleaseSession(ctx context.Context, in *sparkpb.ReleaseSessionRequest) (*sparkpb.ReleaseSessionResponse, error) {
	return unary(ctx, s.Server, sparkpb.ReleaseSessionMethod, in, s.releaseSession)
}

func (s service) FetchErrorDetails(ctx context.Context, in *sparkpb.FetchErrorDetailsRequest) (*sparkpb.FetchErrorDetailsResponse, error) {
	return unary(ctx, s.Server, sparkpb.FetchErrorDetailsMethod, in, s.fetchErrorDetails)
}

func (s service) Config(ctx context.Context, in *sparkpb.ConfigRequest) (*sparkpb.ConfigResponse, error) {
	return unary(ctx, s.Server, sparkpb.ConfigMethod, in, s.config)
}

// execute starts an operation, or finds the one that a client began before it lost the
// connection.
func (s *Server) execute(in *sparkpb.ExecutePlanRequest) (*reader, error) {
	session, err := s.findOrCreate(in.GetUserContext(), in.GetSessionId(), in.GetClientObservedServerSideSessionId())
	if err != nil {
		return nil, err
	}
	id := in.GetOperationId()
	if in.OperationId == nil {
		id = uuid.NewString()
	} else if uuid.Validate(id) != nil {
		return nil, s.handleError(classFormat, id)
	}
	reattachable := wantsReattach(in)
	if op, ok := session.operations[id]; ok {
		return s.executeAgain(op, in.GetPlan(), reattachable)
	}
	// An id is spent with its operation; only Spark 4.0 takes a released one again.
	if session.abandoned[id] || session.released[id] && s.options.Version != Spark40 {
		return nil, s.handleError(classAbandoned, id)
	}
	op := session.newOperation(id, in.GetPlan(), reattachable)
	if err := session.perform(op); err != nil {
		op.fail(err)
	}
	return op.attach(1), nil
}

// executeAgain is an ExecutePlan whose answer was lost: the same again is a reattach,
// since Spark 4.0.
func (s *Server) executeAgain(op *operation, plan *sparkpb.Plan, reattachable bool) (*reader, error) {
	if s.options.Version == Spark35 || !reattachable || !op.reattachable || !proto.Equal(op.plan, plan) {
		return nil, s.handleError(classExists, op.id)
	}
	next, err := op.position(nil)
	if err != nil {
		return nil, err
	}
	return op.attach(next), nil
}

func wantsReattach(in *sparkpb.ExecutePlanRequest) bool {
	for _, option := range in.GetRequestOptions() {
		if option.GetReattachOptions().GetReattachable() {
			return true
		}
	}
	return false
}

func (s *Server) reattach(in *sparkpb.ReattachExecuteRequest) (*reader, error) {
	find := s.find
	if s.options.Version == Spark35 {
		find = s.findOrCreate
	}
	session, err := find(in.GetUserContext(), in.GetSessionId(), in.GetClientObservedServerSideSessionId())
	if err != nil {
		return nil, err
	}
	id := in.GetOperationId()
	op, ok := session.operations[id]
	switch {
	case ok && !op.reattachable:
		return nil, s.handleError(classNotReattachable, id)
	case ok:
		next, err := op.position(in.LastResponseId)
		if err != nil {
			return nil, err
		}
		return op.attach(next), nil
	case session.abandoned[id]:
		return nil, s.handleError(classAbandoned, id)
	}
	return nil, s.handleError(classOperationUnknown, id)
}

// perform runs a command. What it answers lies ready when it returns.
func (session *Session) perform(op *operation) error {
	if session.refuse != nil {
		if err := session.refuse(op.plan.GetCommand()); err != nil {
			return err
		}
	}
	switch command := op.plan.GetCommand().GetCommandType().(type) {
	case *sparkpb.Command_StreamingQueryListenerBusCommand:
		return session.performBus(op, command.StreamingQueryListenerBusCommand)
	case *sparkpb.Command_StreamingQueryManagerCommand:
		return session.performManager(op, command.StreamingQueryManagerCommand)
	case *sparkpb.Command_StreamingQueryCommand:
		return session.performQuery(op, command.StreamingQueryCommand)
	case *sparkpb.Command_WriteStreamOperationStart:
		return session.start(op, command.WriteStreamOperationStart)
	case *sparkpb.Command_SqlCommand:
		return session.sql(op, command.SqlCommand)
	case *sparkpb.Command_CreateDataframeView:
		return session.createView(op, command.CreateDataframeView)
	}
	return notPlayed(op.plan)
}

func (session *Session) performBus(op *operation, command *sparkpb.StreamingQueryListenerBusCommand) error {
	if session.server.options.Version == Spark35 {
		return session.server.javaError("11: { 1: 1 } not supported.", "java.lang.UnsupportedOperationException", nil)
	}
	if command.GetAddListenerBusListener() {
		session.addBus(op)
		return nil
	}
	session.freeSlot()
	op.finish()
	return nil
}

// answer completes an operation with the one response that a command has.
func (op *operation) answer(response *sparkpb.ExecutePlanResponse) error {
	op.add(response)
	op.addProgress()
	op.finish()
	return nil
}
