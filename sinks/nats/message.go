package nats

import (
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// message returns e as it goes to subject, cut and marked if it is larger than
// limit; the limit counts headers and payload, as the server does.
func message(e *listener.Event, subject string, limit int) *nats.Msg {
	msg := binary(e, subject)
	if wireSize(msg) <= limit {
		return msg
	}
	cut := sinks.Fit(*e, limit, func(e *listener.Event) int { return wireSize(binary(e, subject)) })
	return binary(&cut, subject)
}

// binary is the binary mode of the CloudEvents binding for NATS.
func binary(e *listener.Event, subject string) *nats.Msg {
	attributes := sinks.Attributes(e)
	header := make(nats.Header, len(attributes)+2)
	values := make([]string, 0, len(attributes)+2) // one allocation for all the lists of one
	set := func(name, value string) {
		values = append(values, value)
		header[name] = values[len(values)-1 : len(values) : len(values)]
	}
	set(jetstream.MsgIDHeader, sinks.HeaderValue(e.ID))
	for _, a := range attributes {
		set("ce-"+a.Name, sinks.HeaderValue(a.Value))
	}
	if contentType := sinks.ContentType(e); contentType != "" {
		set("content-type", contentType)
	}
	return &nats.Msg{Subject: subject, Header: header, Data: e.Payload}
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
