package connect

import (
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"sparkbridge/listener"
)

// What a definite answer means. Match them with errors.Is.
var (
	// ErrSessionNotFound: the session never existed on this server, or the driver
	// has restarted since.
	ErrSessionNotFound = errors.New("the session does not exist")
	// ErrSessionClosed: the session was closed or expired, so that its id can never be
	// used again; or this program has called Close.
	ErrSessionClosed = errors.New("the session is closed for ever")
	// ErrSessionChanged: the driver has restarted and the session was made again.
	ErrSessionChanged = errors.New("the session was made again by another driver")
	// ErrOperationNotFound: the operation is not known in its session.
	ErrOperationNotFound = errors.New("the operation does not exist")
	// ErrOperationAbandoned: the operation was without a client for too long.
	ErrOperationAbandoned = errors.New("the operation was abandoned")
	// ErrOperationExists: the id is spent. Spark 3.5 does not take the same command
	// again under the same id, as later ones do.
	ErrOperationExists = errors.New("the operation exists already")
	// ErrPositionLost: the responses behind the position are no longer kept.
	ErrPositionLost = errors.New("the position in the operation is lost")
	// ErrDisconnected: another call reads the operation, or it is closing.
	ErrDisconnected = errors.New("another client reads the operation")
	// ErrUnsupported: the server is too old for a listener bus (Spark before 4.0).
	ErrUnsupported = errors.New("the server has no listener bus")
	// ErrUnauthenticated: the token was refused, or is missing.
	ErrUnauthenticated = errors.New("the token was refused")
	// ErrBadID: the server does not take the session id or operation id.
	ErrBadID = errors.New("the id is not a UUID")
	// ErrBusTaken: another client holds the listener bus of the session. Spark says
	// so by silence.
	ErrBusTaken = errors.New("another client holds the listener bus")
	// ErrBusRemoved: somebody else removed the listener, or the session is closing.
	ErrBusRemoved = errors.New("the listener bus was removed")
	// ErrTooLarge: a message is larger than this client is told to receive.
	ErrTooLarge = listener.ErrTooLarge
)

// Error is what a call to Spark Connect came to. Unwrap gives the sentinel that
// tells what it means, where there is one, and the gRPC status.
type Error struct {
	Op       string     // what was asked, such as "probe session"
	Code     codes.Code // of gRPC; INTERNAL for nearly everything that Spark says
	Class    string     // Spark's error class, such as INVALID_HANDLE.SESSION_CLOSED; empty where it gave none
	SQLState string     // differs between versions of Spark; for people only
	Message  string     // cut by Spark at 2,048 characters, except of a refused command
	ErrorID  string     // by which Spark tells the rest, once
	// StackTrace is Spark's, with the causes, where it was asked for: of a refused command.
	StackTrace string
	// RetryAfter is how long the server asked to wait, at least; 0 where it did not.
	RetryAfter time.Duration

	meaning   error
	cause     error
	definite  bool
	bySpark   bool // Spark itself has answered, perhaps without a class
	mayChange bool // the server has asked to try again
}

func (e *Error) Error() string {
	reason := e.Message
	if reason == "" {
		reason = e.Code.String()
	}
	if e.meaning == nil {
		return fmt.Sprintf("%s: %s", e.Op, reason)
	}
	return fmt.Sprintf("%s: %v: %s", e.Op, e.meaning, reason)
}

// Unwrap gives the meaning and the cause.
func (e *Error) Unwrap() []error {
	if e.meaning == nil {
		return []error{e.cause}
	}
	return []error{e.meaning, e.cause}
}

// Definite says whether the server has answered: with an error class or by
// refusing the token. Anything else is weather, and asking again may help.
func (e *Error) Definite() bool { return e.definite && !e.mayChange }

// answered says whether a command was answered. Of what a command is refused for, Spark
// gives a class for a part only; that it is Spark that has refused it is enough.
func (e *Error) answered() bool {
	return e.Definite() || e.bySpark && !e.mayChange && !errors.Is(e.meaning, ErrDisconnected)
}

// IsDefinite says whether err holds a definite answer of the server.
func IsDefinite(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Definite()
}
