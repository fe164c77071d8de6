package sinktest

import (
	"bytes"
	"context"
	"testing"

	"github.com/cloudevents/sdk-go/v2/binding"
	"github.com/cloudevents/sdk-go/v2/binding/spec"

	"sparkbridge/listener"
)

// compareCloudEvent lets the official SDK of CloudEvents read a message, which
// must be valid by its rules and the same event by its eyes.
func compareCloudEvent(t testing.TB, e *listener.Event, m Message) {
	t.Helper()
	event, err := binding.ToEvent(t.Context(), &binaryMessage{message: m})
	if err != nil {
		t.Errorf("event %s: not readable as a CloudEvent: %v", e.ID, err)
		return
	}
	if err := event.Validate(); err != nil {
		t.Errorf("event %s: not valid as a CloudEvent: %v", e.ID, err)
	}
	if event.ID() != e.ID || !bytes.Equal(event.Data(), m.Payload) {
		t.Errorf("event %s: as a CloudEvent it is %s with the data %.300q", e.ID, event.ID(), event.Data())
	}
	if got := event.Time(); !got.Equal(e.Time) {
		t.Errorf("event %s: as a CloudEvent it is of %s, want %s", e.ID, got, e.Time)
	}
}

// binaryMessage shows a message to the SDK as one in binary mode.
type binaryMessage struct {
	binding.MessageMetadataReader // for transformers, of which there are none

	message Message
}

// ReadEncoding says that it is in binary mode.
func (*binaryMessage) ReadEncoding() binding.Encoding { return binding.EncodingBinary }

// ReadStructured says that it is in no other.
func (*binaryMessage) ReadStructured(context.Context, binding.StructuredWriter) error {
	return binding.ErrNotStructured
}

// ReadBinary hands the attributes and the payload to the SDK.
func (b *binaryMessage) ReadBinary(_ context.Context, w binding.BinaryWriter) error {
	version := spec.New().Version(b.message.Attributes["specversion"])
	if version == nil {
		return binding.ErrUnknownEncoding
	}
	for name, value := range b.message.Attributes {
		var err error
		if attribute := version.Attribute(name); attribute != nil {
			err = w.SetAttribute(attribute, value)
		} else {
			err = w.SetExtension(name, value)
		}
		if err != nil {
			return err
		}
	}
	if b.message.ContentType != "" {
		if err := w.SetAttribute(version.AttributeFromKind(spec.DataContentType), b.message.ContentType); err != nil {
			return err
		}
	}
	return w.SetData(bytes.NewReader(b.message.Payload))
}
