package connect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	"sparkbridge/listener"
)

func failure(t testing.TB, code codes.Code, message string, details ...protoadapt.MessageV1) error {
	t.Helper()
	st, err := status.New(code, message).WithDetails(details...)
	if err != nil {
		t.Fatal(err)
	}
	return st.Err()
}

func spark(class string) *errdetails.ErrorInfo {
	return &errdetails.ErrorInfo{Domain: "org.apache.spark", Reason: "org.apache.spark.SparkSQLException", Metadata: map[string]string{"errorClass": class, "sqlState": "HY000", "errorId": "7"}}
}

func TestDefiniteAnswers(t *testing.T) {
	java := func(class string) *errdetails.ErrorInfo {
		return &errdetails.ErrorInfo{Domain: "org.apache.spark", Reason: class, Metadata: map[string]string{"classes": `["` + class + `"]`}}
	}
	for name, c := range map[string]struct {
		err  error
		want error
	}{
		"class in details":          {failure(t, codes.Internal, "text", spark("INVALID_HANDLE.SESSION_CLOSED")), ErrSessionClosed},
		"class in message":          {failure(t, codes.Internal, "[INVALID_HANDLE.SESSION_NOT_FOUND] The handle"), ErrSessionNotFound},
		"class within message, 3.5": {failure(t, codes.Internal, "x: [INVALID_HANDLE.FORMAT] The", java("org.apache.spark.SparkSQLException")), ErrBadID},
		"changed":                   {failure(t, codes.Internal, "", spark("INVALID_HANDLE.SESSION_CHANGED")), ErrSessionChanged},
		"operation":                 {failure(t, codes.Internal, "", spark("INVALID_HANDLE.OPERATION_NOT_FOUND")), ErrOperationNotFound},
		"abandoned":                 {failure(t, codes.Internal, "", spark("INVALID_HANDLE.OPERATION_ABANDONED")), ErrOperationAbandoned},
		"trimmed":                   {failure(t, codes.Internal, "", spark("INVALID_CURSOR.POSITION_NOT_AVAILABLE")), ErrPositionLost},
		"unknown query before 4.2":  {failure(t, codes.Internal, "Streaming query 5b0d2c1e is not found", &errdetails.ErrorInfo{Domain: "org.apache.spark", Reason: "java.lang.IllegalArgumentException"}), listener.ErrNoQuery},
		"run id before 4.2":         {failure(t, codes.Internal, "Run id mismatch for query id 5b0d2c1e. Run id in the request 7 does not match one on the server 8. The query might have restarted.", java("java.lang.IllegalArgumentException")), listener.ErrNoQuery},
		"unknown position":          {failure(t, codes.Internal, "", spark("INVALID_CURSOR.POSITION_NOT_FOUND")), ErrPositionLost},
		"token":                     {failure(t, codes.Unauthenticated, "Invalid authentication token"), ErrUnauthenticated},
		"3.5":                       {failure(t, codes.Internal, "11: { 1: 1 } not supported.", java("java.lang.UnsupportedOperationException")), ErrUnsupported},
		"our limit":                 {failure(t, codes.ResourceExhausted, "grpc: received message larger than max (5 vs. 4)"), ErrTooLarge},
		"class without meaning":     {failure(t, codes.Internal, "", spark("CONNECT_INVALID_PLAN.STREAMING_QUERY_NOT_FOUND")), nil},
	} {
		e := classify("ask", c.err)
		if !e.Definite() || (c.want != nil && !errors.Is(e, c.want)) || !errors.Is(e, c.err) || !strings.HasPrefix(e.Error(), "ask: ") {
			t.Errorf("%s: %v (definite %v), want %v", name, e, e.Definite(), c.want)
		}
	}
	e := classify("ask", failure(t, codes.Internal, "text", spark("X.Y")))
	if e.Class != "X.Y" || e.SQLState != "HY000" || e.ErrorID != "7" || e.Message != "text" {
		t.Errorf("fields: %+v", e)
	}
}

func TestWeather(t *testing.T) {
	retry := &errdetails.RetryInfo{RetryDelay: durationpb.New(time.Second)}
	for name, err := range map[string]error{
		"refused":                    status.Error(codes.Unavailable, "connection refused"),
		"proxy without details":      status.Error(codes.Internal, "upstream reset"),
		"proxy with brackets":        status.Error(codes.Internal, "[UPSTREAM_ERROR] no healthy host"),
		"other domain":               failure(t, codes.Internal, "[RATE_LIMIT.X] no", &errdetails.ErrorInfo{Domain: "example.com"}),
		"balancer":                   status.Error(codes.Unavailable, "unexpected HTTP status code received from server: 502"),
		"forbidden by balancer":      status.Error(codes.PermissionDenied, "unexpected HTTP status code received from server: 403"),
		"not this service":           status.Error(codes.Unimplemented, "unknown method"),
		"closed by us":               status.Error(codes.Canceled, "grpc: the client connection is closing"),
		"deadline":                   context.DeadlineExceeded,
		"driver out of memory":       failure(t, codes.Internal, "Java heap space", &errdetails.ErrorInfo{Domain: "org.apache.spark", Reason: "java.lang.OutOfMemoryError"}),
		"server asks for patience":   failure(t, codes.Internal, "", spark("INVALID_HANDLE.SESSION_CLOSED"), retry),
		"exhausted server":           status.Error(codes.ResourceExhausted, "too many streams"),
		"somebody else in our place": failure(t, codes.Internal, "", spark("INVALID_CURSOR.DISCONNECTED")),
	} {
		if e := classify("ask", fmt.Errorf("%w", err)); e.Definite() || IsDefinite(e) {
			t.Errorf("%s: %v is definite", name, e)
		}
	}
}

func TestWaitsAreSparks(t *testing.T) {
	w := newWaits()
	weather := classify("ask", status.Error(codes.Unavailable, ""))
	want := []time.Duration{50, 200, 800, 3200, 12800, 51200, 60000, 60000}
	for i, ms := range want {
		least := ms * time.Millisecond
		most := least
		if least >= 2*time.Second {
			most += 500 * time.Millisecond
		}
		if got := w.next(weather); got < least || got > most {
			t.Errorf("wait %d is %v, want %v to %v", i, got, least, most)
		}
	}
	w.reset()
	if got := w.next(weather); got != 50*time.Millisecond {
		t.Errorf("after an answer the wait is %v", got)
	}
	for asked, want := range map[time.Duration]time.Duration{7 * time.Second: 7 * time.Second, time.Hour: 10 * time.Minute} {
		e := classify("ask", failure(t, codes.Internal, "", &errdetails.RetryInfo{RetryDelay: durationpb.New(asked)}))
		if got := w.next(e); got != want {
			t.Errorf("asked for %v the wait is %v", asked, got)
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(uint32(13), "[INVALID_HANDLE.FORMAT] x", "org.apache.spark", "java.lang.X", "INVALID_CURSOR.DISCONNECTED", int64(5))
	f.Add(uint32(8), "grpc: received message larger than max (1 vs. 0)", "", "", "", int64(-1))
	f.Fuzz(func(t *testing.T, code uint32, message, domain, reason, class string, delay int64) {
		st, err := status.New(codes.Code(code), message).WithDetails(
			&errdetails.ErrorInfo{Domain: domain, Reason: reason, Metadata: map[string]string{"errorClass": class}},
			&errdetails.RetryInfo{RetryDelay: durationpb.New(time.Duration(delay))})
		if err != nil {
			return
		}
		e := classify("ask", st.Err())
		if w := newWaits().next(e); e.Error() == "" || w < 0 || w > 10*time.Minute {
			t.Fatalf("%v waits %v", e, w)
		}
	})
}
