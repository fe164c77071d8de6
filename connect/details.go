package connect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sparkbridge/connect/sparkpb"
)

// detailed completes the refusal of a command with what Spark keeps of it: the whole
// message and the stack trace. Spark tells them once, and only later than 3.5; without
// them the error stays as it is.
func (s *Session) detailed(ctx context.Context, e *Error) *Error {
	if e.ErrorID == "" {
		return e
	}
	var details *sparkpb.FetchErrorDetailsResponse
	err := s.link.call(ctx, callTime, func(ctx context.Context, spark sparkpb.SparkConnectServiceClient) (err error) {
		details, err = spark.FetchErrorDetails(s.outgoing(ctx), &sparkpb.FetchErrorDetailsRequest{
			SessionId:                         s.ID(),
			ClientObservedServerSideSessionId: s.observedID(),
			UserContext:                       s.user(),
			ErrorId:                           e.ErrorID,
			ClientType:                        &s.clientType,
		})
		return err
	})
	if err != nil {
		s.log.Debug("the details of an error were not told", "err", err)
		return e
	}
	if chain := causes(details); len(chain) > 0 {
		whole := *e
		whole.Message, whole.StackTrace = chain[0].GetMessage(), stackTrace(chain)
		return &whole
	}
	return e
}

// causes are an exception and what caused it, in this order.
func causes(details *sparkpb.FetchErrorDetailsResponse) []*sparkpb.FetchErrorDetailsResponse_Error {
	if details.RootErrorIdx == nil {
		return nil
	}
	var chain []*sparkpb.FetchErrorDetailsResponse_Error
	for i := int(details.GetRootErrorIdx()); i >= 0 && i < len(details.GetErrors()); {
		e := details.GetErrors()[i]
		if slices.Contains(chain, e) {
			break
		}
		chain = append(chain, e)
		if e.CauseIdx == nil {
			break
		}
		i = int(e.GetCauseIdx())
	}
	return chain
}

// stackTrace prints exceptions as Java does.
func stackTrace(chain []*sparkpb.FetchErrorDetailsResponse_Error) string {
	var b strings.Builder
	for i, e := range chain {
		if i > 0 {
			b.WriteString("Caused by: ")
		}
		if types := e.GetErrorTypeHierarchy(); len(types) > 0 {
			b.WriteString(types[0] + ": ")
		}
		b.WriteString(e.GetMessage() + "\n")
		for _, at := range e.GetStackTrace() {
			place := "Unknown Source"
			if at.FileName != nil {
				place = fmt.Sprintf("%s:%d", at.GetFileName(), at.GetLineNumber())
			}
			fmt.Fprintf(&b, "\tat %s.%s(%s)\n", at.GetDeclaringClass(), at.GetMethodName(), place)
		}
	}
	return b.String()
}
