package nats

import (
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// form is how events travel.
type form struct {
	format  sinks.Format // binary if empty
	headers sinks.Headers
}

// message returns e as it goes to subject, cut and marked if it is larger than
// limit; the limit counts headers and payload, as the server does. One that cannot be
// cut so far is refused for good.
func (f *form) message(e *listener.Event, subject string, limit int) (*nats.Msg, error) {
	msg := f.dress(e, subject)
	if wireSize(msg) <= limit {
		return msg, nil
	}
	cut := sinks.Fit(*e, limit, func(e *listener.Event) int { return wireSize(f.dress(e, subject)) })
	msg = f.dress(&cut, subject)
	if size := wireSize(msg); size > limit {
		return nil, sinks.Permanent(&sinks.OversizeError{Place: "subject " + subject, Size: size, Limit: limit})
	}
	return msg, nil
}

// dress is the binary or structured mode of the CloudEvents binding for NATS, or the
// payload alone.
func (f *form) dress(e *listener.Event, subject string) *nats.Msg {
	h := newHeader(24)
	h.set(jetstream.MsgIDHeader, sinks.HeaderValue(messageID(e)))
	msg := &nats.Msg{Subject: subject, Header: h.header, Data: e.Payload}
	switch f.format {
	case sinks.FormatStructured:
		h.set("content-type", sinks.StructuredContentType)
		msg.Data = sinks.Structured(e)
	case sinks.FormatRaw:
		h.setIf("content-type", sinks.ContentType(e))
	default:
		for _, a := range sinks.Attributes(e) {
			h.set("ce-"+a.Name, sinks.HeaderValue(a.Value))
		}
		h.setIf("content-type", sinks.ContentType(e))
	}
	for _, own := range f.headers {
		h.setIf(own.Name, sinks.HeaderValue(own.Value.Text(e)))
	}
	return msg
}

// messageID is what a stream recognises repeats by: the id of the event, and of a
// replay its name besides, since a repeat is what that is for.
func messageID(e *listener.Event) string {
	if e.Replay == "" {
		return e.ID
	}
	return e.ID + ":" + e.Replay
}

// header is made with one allocation for all its lists of one value.
type header struct {
	header nats.Header
	values []string
}

func newHeader(n int) *header {
	return &header{make(nats.Header, n), make([]string, 0, n)}
}

func (h *header) set(name, value string) {
	h.values = append(h.values, value)
	h.header[name] = h.values[len(h.values)-1 : len(h.values) : len(h.values)]
}

// setIf leaves out what is empty.
func (h *header) setIf(name, value string) {
	if value != "" {
		h.set(name, value)
	}
}

// wireSize is what the server holds against its max_payload: the payload and
// the header block, "NATS/1.0", a line for each header and an empty one.
func wireSize(msg *nats.Msg) int {
	size := len("NATS/1.0\r\n") + len("\r\n") + len(msg.Data)
	for name, values := range msg.Header {
		size += len(name) + len(": ") + len(values[0]) + len("\r\n")
	}
	return size
}
