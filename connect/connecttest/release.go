package connecttest

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/sparkpb"
)

// release forgets an operation or its first responses. That an operation is not known
// is no error: it is forgotten, as was wished. The server-side session id that the client
// has observed is not looked at here, unlike in the other calls.
func (s *Server) release(in *sparkpb.ReleaseExecuteRequest) (*sparkpb.ReleaseExecuteResponse, error) {
	session, err := s.find(in.GetUserContext(), in.GetSessionId(), "")
	if err != nil {
		return nil, err
	}
	out := &sparkpb.ReleaseExecuteResponse{SessionId: session.id, ServerSideSessionId: session.serverSide}
	op, ok := session.operations[in.GetOperationId()]
	if !ok {
		return out, nil
	}
	out.OperationId = &op.id
	switch what := in.GetRelease().(type) {
	case *sparkpb.ReleaseExecuteRequest_ReleaseAll_:
		return out, session.releaseAll(op)
	case *sparkpb.ReleaseExecuteRequest_ReleaseUntil_:
		return out, s.releaseUntil(op, what.ReleaseUntil.GetResponseId())
	}
	return nil, s.javaError("Release type not set.", "java.lang.UnsupportedOperationException", nil)
}

// releaseAll ends an operation. The server stumbles over an ADD that it never answered,
// and says so; the operation is gone all the same.
func (session *Session) releaseAll(op *operation) error {
	session.discard(op)
	session.released[op.id] = true
	if !op.silent {
		return nil
	}
	const state = "Operation has status Closed which is not within statuses List(Finished, Failed, Canceled) for event Closed"
	if session.server.options.Version == Spark42 {
		return session.server.classError("SPARK_CONNECT_ILLEGAL_STATE.STATE_CONSISTENCY_NO_OPERATION", state)
	}
	return session.server.javaError(state, "java.lang.IllegalStateException", nil)
}

func (s *Server) releaseUntil(op *operation, responseID string) error {
	number, known := op.numbers[responseID]
	if !known {
		return s.handleError(classPositionUnknown, responseID)
	}
	op.remove(number)
	return nil
}

// analyze tells the version, and of a plan little more than whether it is a stream. It makes
// the session.
func (s *Server) analyze(in *sparkpb.AnalyzePlanRequest) (*sparkpb.AnalyzePlanResponse, error) {
	session, err := s.findOrCreate(in.GetUserContext(), in.GetSessionId(), in.GetClientObservedServerSideSessionId())
	if err != nil {
		return nil, err
	}
	out := &sparkpb.AnalyzePlanResponse{SessionId: session.id, ServerSideSessionId: session.serverSide}
	switch what := in.GetAnalyze().(type) {
	case *sparkpb.AnalyzePlanRequest_SparkVersion_:
		out.Result = &sparkpb.AnalyzePlanResponse_SparkVersion_{
			SparkVersion: &sparkpb.AnalyzePlanResponse_SparkVersion{Version: string(s.options.Version) + ".0"},
		}
	case *sparkpb.AnalyzePlanRequest_IsStreaming_:
		out.Result = &sparkpb.AnalyzePlanResponse_IsStreaming_{
			IsStreaming: &sparkpb.AnalyzePlanResponse_IsStreaming{IsStreaming: session.streams(what.IsStreaming.GetPlan().GetRoot())},
		}
	case *sparkpb.AnalyzePlanRequest_TreeString_:
		out.Result = &sparkpb.AnalyzePlanResponse_TreeString_{TreeString: &sparkpb.AnalyzePlanResponse_TreeString{TreeString: "root\n"}}
	case *sparkpb.AnalyzePlanRequest_Explain_:
		out.Result = &sparkpb.AnalyzePlanResponse_Explain_{Explain: &sparkpb.AnalyzePlanResponse_Explain{ExplainString: "== Physical Plan ==\n"}}
	default:
		return nil, notPlayed(what)
	}
	return out, nil
}

// releaseSession closes a session, unless an ADD that was never answered is open in it.
func (s *Server) releaseSession(in *sparkpb.ReleaseSessionRequest) (*sparkpb.ReleaseSessionResponse, error) {
	if s.options.Version == Spark35 {
		return nil, status.Error(codes.Unimplemented, "Method not found: spark.connect.SparkConnectService/ReleaseSession")
	}
	key := sessionKey{in.GetUserContext().GetUserId(), in.GetSessionId()}
	out := &sparkpb.ReleaseSessionResponse{SessionId: key.id}
	session, ok := s.sessions[key]
	if !ok || session.closed {
		return out, nil
	}
	for _, op := range session.operations {
		if op.silent {
			return nil, s.javaError("Operation has status Started which is not within statuses for event Closed", "java.lang.IllegalStateException", nil)
		}
	}
	session.close()
	out.ServerSideSessionId = session.serverSide
	return out, nil
}

// fetchErrorDetails tells the whole of an error, once.
func (s *Server) fetchErrorDetails(in *sparkpb.FetchErrorDetailsRequest) (*sparkpb.FetchErrorDetailsResponse, error) {
	session, err := s.find(in.GetUserContext(), in.GetSessionId(), in.GetClientObservedServerSideSessionId())
	if err != nil {
		return nil, err
	}
	out := &sparkpb.FetchErrorDetailsResponse{SessionId: session.id, ServerSideSessionId: session.serverSide}
	if message, ok := s.errors[in.GetErrorId()]; ok {
		delete(s.errors, in.GetErrorId())
		out.RootErrorIdx = new(int32)
		out.Errors = []*sparkpb.FetchErrorDetailsResponse_Error{{Message: message}}
	}
	return out, nil
}
