package connect

import (
	"errors"
	"regexp"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/listener"
)

// The error classes of Spark that change what is done next. Spark matches none of
// them to a gRPC code of its own: all come as INTERNAL.
var meanings = map[string]error{
	"INVALID_HANDLE.FORMAT":                   ErrBadID,
	"INVALID_HANDLE.SESSION_NOT_FOUND":        ErrSessionNotFound,
	"INVALID_HANDLE.SESSION_CLOSED":           ErrSessionClosed,
	"INVALID_HANDLE.SESSION_CHANGED":          ErrSessionChanged,
	"INVALID_HANDLE.OPERATION_NOT_FOUND":      ErrOperationNotFound,
	"INVALID_HANDLE.OPERATION_ABANDONED":      ErrOperationAbandoned,
	"INVALID_HANDLE.OPERATION_ALREADY_EXISTS": ErrOperationExists,
	"INVALID_CURSOR.DISCONNECTED":             ErrDisconnected,
	"INVALID_CURSOR.POSITION_NOT_AVAILABLE":   ErrPositionLost,
	"INVALID_CURSOR.POSITION_NOT_FOUND":       ErrPositionLost,

	"CONNECT_INVALID_PLAN.STREAMING_QUERY_NOT_FOUND":       listener.ErrNoQuery,
	"CONNECT_INVALID_PLAN.STREAMING_QUERY_RUN_ID_MISMATCH": listener.ErrNoQuery,
}

var (
	// unknownQuery is what Spark before 4.2 says where later ones have a class.
	unknownQuery = regexp.MustCompile(`(?i)streaming query \S+ is not found|run id mismatch for query id`)

	bracketed = regexp.MustCompile(`\[([A-Z][A-Z0-9_]*(?:\.[A-Z][A-Z0-9_]*)*)\]`)
	uuids     = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`)
)

// classify turns the failure of a call into an *Error. It is the only place that
// looks into gRPC statuses.
func classify(op string, err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	st := status.Convert(err)
	e := &Error{Op: op, Code: st.Code(), Message: st.Message(), cause: err}
	bySpark, java := e.readDetails(st)
	if e.Class == "" {
		e.Class = classInMessage(e.Message, bySpark)
	}
	e.meaning, e.bySpark = meanings[e.Class], bySpark
	switch {
	case e.Class != "":
		// Who else reads an operation may stop to; that is no answer about us.
		e.definite = !errors.Is(e.meaning, ErrDisconnected)
	case e.Code == codes.Unauthenticated:
		e.meaning, e.definite = ErrUnauthenticated, true
	case tooLarge(e):
		e.meaning, e.definite = ErrTooLarge, true
	case strings.Contains(java, "java.lang.UnsupportedOperationException"):
		e.meaning, e.definite = ErrUnsupported, true
	case bySpark && unknownQuery.MatchString(e.Message):
		e.meaning, e.definite = listener.ErrNoQuery, true
	}
	return e
}

// readDetails takes what stands beside the status. Spark 3.5 names Java classes
// only.
func (e *Error) readDetails(st *status.Status) (bySpark bool, java string) {
	for _, d := range st.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			e.Class = d.Metadata["errorClass"]
			e.SQLState = d.Metadata["sqlState"]
			e.ErrorID = d.Metadata["errorId"]
			bySpark = d.Domain == "org.apache.spark"
			java = d.Reason + d.Metadata["classes"]
		case *errdetails.RetryInfo:
			e.mayChange = true
			e.RetryAfter = d.GetRetryDelay().AsDuration()
		}
	}
	return bySpark, java
}

// classInMessage finds the class that Spark puts in brackets, anywhere in the
// message. Where nothing else says that Spark wrote it, only classes that are
// known here count: a proxy uses brackets too.
func classInMessage(message string, bySpark bool) string {
	for _, m := range bracketed.FindAllStringSubmatch(message, -1) {
		if _, known := meanings[m[1]]; known || (bySpark && strings.ContainsAny(m[1], "._")) {
			return m[1]
		}
	}
	return ""
}

// tooLarge tells our own refusal of a large message from a server that is out of
// something: gRPC gives both the same code and no details.
func tooLarge(e *Error) bool {
	return e.Code == codes.ResourceExhausted && strings.HasPrefix(e.Message, "grpc: received message ") && strings.Contains(e.Message, "larger than max")
}

// unimplemented tells a server that does not know a method at all.
func unimplemented(err error) bool { return status.Code(err) == codes.Unimplemented }

// kindOf is what stays the same while one failure repeats: neither ids nor the
// numbers of ports and bytes.
func kindOf(err error) string {
	var e *Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	text := uuids.ReplaceAllString(e.Message, "#")
	return e.Op + e.Code.String() + e.Class + strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, text)
}
