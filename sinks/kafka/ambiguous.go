package kafka

import (
	"errors"
	"net"

	"github.com/segmentio/kafka-go"
)

// State is what became of events, as it was at one moment.
type State struct {
	// Ambiguous counts the events since the start of which no broker has said
	// whether it has them: no answer came in time, the connection broke, or a
	// replica was missing. They are sent again, so each may be there twice,
	// under the same id; none is missing for that.
	Ambiguous uint64
}

// State returns what became of events. It may be called beside Deliver.
func (s *Sink) State() State { return State{Ambiguous: s.ambiguous.Load()} }

// countAmbiguous counts the messages of a failed round that may be written all
// the same. An error that is not told by message comes from before anything was sent.
func (s *Sink) countAmbiguous(err error) {
	var each kafka.WriteErrors
	if !errors.As(err, &each) {
		return
	}
	for _, cause := range each {
		if cause != nil && ambiguous(cause) {
			s.ambiguous.Add(1)
		}
	}
}

// ambiguous tells an error that leaves open whether the message is written from a
// definite refusal.
func ambiguous(err error) bool {
	var answer kafka.Error
	if errors.As(err, &answer) {
		return answer == kafka.RequestTimedOut || answer == kafka.NotEnoughReplicasAfterAppend || answer == kafka.NetworkException
	}
	var op *net.OpError
	dialing := errors.As(err, &op) && op.Op == "dial"
	return !dialing && !errors.As(err, new(*dialError)) && !errors.As(err, new(kafka.MessageTooLargeError))
}
