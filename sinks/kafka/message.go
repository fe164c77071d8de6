package kafka

import (
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// form is how events travel.
type form struct {
	format  sinks.Format    // binary if empty
	key     *sinks.Template // nil for the partition key of the event
	headers sinks.Headers
}

// form reads the templates of the configuration.
func (c Config) form() (form, error) {
	f := form{format: c.Format}
	var keyErr, headersErr error
	if c.Key != "" {
		var key *sinks.Template
		if key, keyErr = sinks.ParseTemplate(c.Key); keyErr != nil {
			keyErr = fmt.Errorf("key: %w", keyErr)
		} else {
			f.key = key.With(c.Labels)
		}
	}
	f.headers, headersErr = sinks.ParseHeaders(c.Headers, c.Labels)
	return f, errors.Join(keyErr, headersErr)
}

// message returns e as it goes to topic, cut and marked if it is larger than limit.
// One that cannot be cut so far is refused for good.
func (f *form) message(e *listener.Event, topic string, limit int) (kafka.Message, error) {
	msg := f.dress(e, topic)
	if recordSize(&msg) <= limit {
		return msg, nil
	}
	cut := sinks.Fit(*e, limit, func(e *listener.Event) int {
		msg := f.dress(e, topic)
		return recordSize(&msg)
	})
	msg = f.dress(&cut, topic)
	if size := recordSize(&msg); size > limit {
		return msg, sinks.Permanent(&sinks.OversizeError{Place: "topic " + topic, Size: size, Limit: limit})
	}
	return msg, nil
}

// dress is the binary or structured mode of the CloudEvents binding for Kafka, or the
// payload alone. Unlike those of HTTP its headers are UTF-8. The record's time is when
// it is written: Kafka counts retention from it and refuses what lies in the future.
func (f *form) dress(e *listener.Event, topic string) kafka.Message {
	msg := kafka.Message{Topic: topic, Key: []byte(f.keyOf(e)), Value: e.Payload}
	add := func(name, value string) {
		if value != "" {
			msg.Headers = append(msg.Headers, kafka.Header{Key: name, Value: []byte(value)})
		}
	}
	switch f.format {
	case sinks.FormatStructured:
		msg.Value = sinks.Structured(e)
		add("content-type", sinks.StructuredContentType)
	case sinks.FormatRaw:
		add("content-type", sinks.ContentType(e))
	default:
		attributes := sinks.Attributes(e)
		msg.Headers = make([]kafka.Header, 0, len(attributes)+1+len(f.headers))
		for _, a := range attributes {
			add("ce_"+a.Name, a.Value)
		}
		add("content-type", sinks.ContentType(e))
	}
	for _, own := range f.headers {
		add(own.Name, own.Value.Text(e))
	}
	return msg
}

func (f *form) keyOf(e *listener.Event) string {
	if f.key == nil {
		return e.PartitionKey()
	}
	return f.key.Text(e)
}
