// Package redact masks credentials in the texts of events: what Spark and its
// connectors print into exceptions and descriptions holds JDBC URLs, keys of storage
// accounts and passwords of Kafka, and would carry them to every consumer.
//
// It promises that JSON stays JSON, that every byte which is no credential stays as
// Spark sent it, and that masking twice is masking once. It finds credentials by their
// form, or by the name in front of them: one that has neither is not found.
package redact

import (
	"bytes"
	"context"
	"slices"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// Mask stands where a credential was.
const Mask = "***"

// keysOf are the keys of the texts that are looked through, at whatever depth. All else
// is made of names, numbers and offsets.
var keysOf = map[listener.Kind][]string{
	listener.KindProgress:   {"description"},
	listener.KindIdle:       {"description"},
	listener.KindTerminated: {"exception"},
	listener.KindBus:        {"reason"},
	listener.KindUnknown:    {"exception", "description"},
}

// Event returns e with the credentials in its texts masked, and marked Redacted if
// there were any. The event that was given stays as it is.
func Event(e listener.Event) listener.Event {
	for _, key := range keysOf[e.Kind] {
		masked, found := document(e.Payload, key, e.Truncated)
		e.Payload, e.Redacted = masked, e.Redacted || found
	}
	return e
}

// Text returns a text of no event with the credentials in it masked.
func Text(text string) string {
	raw := []byte(text)
	masked := mask(nil, raw, find(raw, false))
	if masked == nil {
		return text
	}
	return string(masked)
}

// Sink returns a sink that delivers by s, with credentials masked.
func Sink(s sinks.Sink) sinks.Sink { return masking{s} }

type masking struct{ sinks.Sink }

// Deliver masks copies of the events: whoever gave them keeps them as they are.
func (m masking) Deliver(ctx context.Context, events []listener.Event) (int, error) {
	given, copied := events, false
	for i := range given {
		masked := Event(given[i])
		if !masked.Redacted {
			continue
		}
		if !copied {
			events, copied = slices.Clone(given), true
		}
		events[i] = masked
	}
	return m.Sink.Deliver(ctx, events)
}

// document masks in the texts of a key. It returns doc itself where there is nothing to
// mask.
func document(doc []byte, key string, cut bool) (out []byte, found bool) {
	copied := 0
	for at := 0; ; {
		next := bytes.Index(doc[at:], []byte(key))
		if next < 0 {
			break
		}
		at += next + len(key)
		text, ok := textBehind(doc, key, at)
		if !ok {
			continue
		}
		at = text.to
		spans := findEscaped(doc[text.from:text.to], cut)
		if len(spans) == 0 {
			continue
		}
		out = append(out, doc[copied:text.from]...)
		out = mask(out, doc[text.from:text.to], spans)
		copied = text.to
	}
	if out == nil {
		return doc, false
	}
	return append(out, doc[copied:]...), true
}

// mask appends a text to out with what the spans tell replaced, or nothing if there
// are none.
func mask(out, text []byte, spans []span) []byte {
	if len(spans) == 0 {
		return out
	}
	at := 0
	for _, s := range spans {
		out = append(append(out, text[at:s.from]...), Mask...)
		at = s.to
	}
	return append(out, text[at:]...)
}
