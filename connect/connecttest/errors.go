package connecttest

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The error classes of Spark that concern sessions and operations.
const (
	classFormat           = "INVALID_HANDLE.FORMAT"
	classSessionNotFound  = "INVALID_HANDLE.SESSION_NOT_FOUND"
	classSessionClosed    = "INVALID_HANDLE.SESSION_CLOSED"
	classSessionChanged   = "INVALID_HANDLE.SESSION_CHANGED"
	classOperationUnknown = "INVALID_HANDLE.OPERATION_NOT_FOUND"
	classAbandoned        = "INVALID_HANDLE.OPERATION_ABANDONED"
	classExists           = "INVALID_HANDLE.OPERATION_ALREADY_EXISTS"
	classDisconnected     = "INVALID_CURSOR.DISCONNECTED"
	classNotReattachable  = "INVALID_CURSOR.NOT_REATTACHABLE"
	classPositionGone     = "INVALID_CURSOR.POSITION_NOT_AVAILABLE"
	classPositionUnknown  = "INVALID_CURSOR.POSITION_NOT_FOUND"
	classQueryUnknown     = "CONNECT_INVALID_PLAN.STREAMING_QUERY_NOT_FOUND"
	classRunUnknown       = "CONNECT_INVALID_PLAN.STREAMING_QUERY_RUN_ID_MISMATCH"
)

const (
	errorDomain = "org.apache.spark"
	// cutAt is where the server cuts messages; the rest is fetched by error id.
	cutAt = 2048
)

// Error is an error with Spark's error class, as the server answers it: INTERNAL,
// with one ErrorInfo in the details. The text follows the bracketed class in the
// message. Inject it to answer what the server would not on its own.
func (s *Server) Error(class, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.classError(class, text)
}

// RetryAfter adds to an error the wait that the server asks for (RetryInfo).
func RetryAfter(err error, wait time.Duration) error {
	return withDetail(status.Convert(err), &errdetails.RetryInfo{RetryDelay: durationpb.New(wait)})
}

func (s *Server) classError(class, text string) error {
	return s.sparkError(class, text, nil)
}

// handleError is one of the errors about a session or an operation, as Spark words them.
func (s *Server) handleError(class, handle string) error {
	_, what, _ := strings.Cut(class, ".")
	text := fmt.Sprintf("The handle %s is invalid. %s.", handle, strings.ToLower(strings.ReplaceAll(what, "_", " ")))
	return s.sparkError(class, text, map[string]string{"handle": handle})
}

// streamFailed is the error of a wait for a query that has failed.
func (s *Server) streamFailed(text string) error {
	message := "[STREAM_FAILED] " + text + " SQLSTATE: XXKST"
	return s.javaError(message, "org.apache.spark.sql.streaming.StreamingQueryException", map[string]string{
		"errorClass": "STREAM_FAILED", "sqlState": "XXKST", "messageParameters": "{}", "errorId": s.keep(message),
	})
}

func (s *Server) sparkError(class, text string, parameters map[string]string) error {
	state := sqlState(class)
	message := fmt.Sprintf("[%s] %s SQLSTATE: %s", class, text, state)
	told, err := json.Marshal(parameters)
	if err != nil {
		panic(err) // a map of strings cannot fail
	}
	metadata := map[string]string{"errorClass": class, "sqlState": state, "messageParameters": string(told)}
	// The whole of an error is kept in the session: where there is none, there is no id.
	if class != classSessionNotFound && class != classSessionClosed {
		metadata["errorId"] = s.keep(message)
	}
	return s.javaError(message, "org.apache.spark.SparkSQLException", metadata)
}

// keep remembers the whole message of an error until it is fetched.
func (s *Server) keep(message string) (errorID string) {
	errorID = uuid.NewString()
	s.errors[errorID] = message
	return errorID
}

// javaError is an exception of the driver. Spark 3.5 sends its class and no more.
func (s *Server) javaError(message, class string, metadata map[string]string) error {
	info := map[string]string{"classes": fmt.Sprintf(`[%q,"java.lang.Exception","java.lang.Throwable","java.lang.Object"]`, class)}
	if s.options.Version != Spark35 {
		maps.Copy(info, metadata)
	}
	if len(message) > cutAt {
		message = message[:cutAt-3] + "..."
	}
	return withDetail(status.New(codes.Internal, message), &errdetails.ErrorInfo{Domain: errorDomain, Reason: class, Metadata: info})
}

// sqlState is what a client must not rely on: releases differ, and it is left out here
// that Spark 4.3 answers 08003 where it is about sessions.
func sqlState(class string) string {
	if strings.HasPrefix(class, "INVALID_CURSOR.") {
		return "HY109"
	}
	return "HY000"
}

func withDetail(st *status.Status, detail protoadapt.MessageV1) error {
	detailed, err := st.WithDetails(detail)
	if err != nil { // OK statuses only: a test asked to fail with success
		panic(fmt.Sprintf("connecttest: add detail to %v: %v", st, err))
	}
	return detailed.Err()
}
