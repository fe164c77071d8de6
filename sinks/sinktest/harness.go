// Package sinktest is the conformance suite of the sinks: what every one of them
// promises, tried on its real destination. A sink's test opens that destination,
// describes it by a Harness, and calls Run.
package sinktest

import (
	"context"
	"testing"
	"time"

	"sparkbridge/sinks"
)

// Harness is one real destination, empty when it is handed out, with the means
// to disturb it. A case calls its functions from one goroutine.
type Harness struct {
	// New makes a sink that delivers to the destination, also while that is
	// stopped or frozen. The suite closes it. Give it short time-outs (a second
	// or two), as some cases wait for them.
	New func(t testing.TB) sinks.Sink

	// Received returns everything that has arrived so far, in the order in which
	// it stands at the destination; repeats included, as far as the destination
	// shows them. It is asked again until what is expected has come.
	Received func(ctx context.Context) ([]Message, error)

	// Stop ends the server hard, or makes it unreachable: connections break and
	// new ones are refused. Start undoes it at the same address, with what had
	// been acknowledged still there unless Forgets.
	Stop, Start func(t testing.TB)

	// Freeze makes the server hang: connections stay open and are accepted, but
	// nothing is answered. Thaw lets it go on.
	Freeze, Thaw func(t testing.TB)

	// Slow makes every answer late by about delay; 0 ends that. Nil where the
	// destination cannot be slowed down: the case is skipped.
	Slow func(t testing.TB, delay time.Duration)

	// Limit is the most bytes that one event may take at the destination, all
	// headers included; 0 where there is no limit.
	Limit int

	// Forgets says that an acknowledgement is no promise to keep: what arrives
	// while nobody listens is lost (core NATS). Of the cases that break the
	// connection only the order is then checked, and that events go on to arrive.
	Forgets bool

	// CancelWithin bounds how long Deliver may take to return after its context
	// was cancelled, with the server frozen. Default 10s.
	CancelWithin time.Duration
}

// Message is one event as it stands at the destination.
type Message struct {
	// PartitionKey is what the destination keeps together: the record key of
	// Kafka, elsewhere the attribute partitionkey.
	PartitionKey string
	// Attributes are the CloudEvents attributes, decoded and without prefix,
	// datacontenttype left out.
	Attributes map[string]string
	// ContentType is the datacontenttype.
	ContentType string
	// IDs are the event's id everywhere else where the destination shows it
	// (Nats-Msg-Id, webhook-id); they must equal the attribute id.
	IDs []string
	// Payload is the event's data.
	Payload []byte
}

// ID is the event's id.
func (m Message) ID() string { return m.Attributes["id"] }
