package sinktest

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"testing"
	"unicode/utf8"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// expect waits until all events have arrived, and checks what did.
func (h Harness) expect(t testing.TB, events []listener.Event) {
	t.Helper()
	var got []Message
	until(t, "all events have arrived", func() bool {
		got = h.received(t)
		return len(missing(events, got)) == 0
	})
	h.check(t, events, got)
}

func (h Harness) received(t testing.TB) []Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := h.Received(ctx)
	if err != nil {
		t.Fatalf("read what has arrived: %v", err)
	}
	return got
}

func missing(events []listener.Event, got []Message) []string {
	have := map[string]bool{}
	for _, m := range got {
		have[m.ID()] = true
	}
	var ids []string
	for i := range events {
		if !have[events[i].ID] {
			ids = append(ids, events[i].ID)
		}
	}
	return ids
}

// check compares every message with its event, repeats included, and the order
// in which each query's events first arrived.
func (h Harness) check(t testing.TB, events []listener.Event, got []Message) {
	t.Helper()
	sent := map[string]*listener.Event{}
	for i := range events {
		sent[events[i].ID] = &events[i]
	}
	newest := map[string]uint64{}
	seen := map[string]bool{}
	for _, m := range got {
		e, known := sent[m.ID()]
		if !known {
			t.Fatalf("%q arrived and was never sent", m.ID())
		}
		h.compare(t, e, m)
		if key := e.PartitionKey(); !seen[e.ID] {
			if e.Sequence < newest[key] {
				t.Fatalf("query %s: event %d arrived after event %d", key, e.Sequence, newest[key])
			}
			seen[e.ID], newest[key] = true, e.Sequence
		}
	}
}

// compare checks one message against its event: everything the same, or cut and
// marked where the destination's limit asks for it.
func (h Harness) compare(t testing.TB, e *listener.Event, m Message) {
	t.Helper()
	want := map[string]string{}
	for _, a := range sinks.Attributes(e) {
		want[a.Name] = a.Value
	}
	if m.Attributes["sparktruncated"] == "true" {
		want["sparktruncated"] = "true"
		h.compareCut(t, e, m)
	} else {
		comparePayload(t, e, m)
	}
	if !maps.Equal(m.Attributes, want) {
		t.Errorf("event %s: attributes\n got %q\nwant %q", e.ID, m.Attributes, want)
	}
	compareCloudEvent(t, e, m)
	if m.PartitionKey != e.PartitionKey() {
		t.Errorf("event %s: partition key %q, want %q", e.ID, m.PartitionKey, e.PartitionKey())
	}
	for _, id := range m.IDs {
		if id != e.ID {
			t.Errorf("event %s: has the id %q in another place", e.ID, id)
		}
	}
}

func comparePayload(t testing.TB, e *listener.Event, m Message) {
	t.Helper()
	if !bytes.Equal(m.Payload, e.Payload) {
		t.Errorf("event %s: payload of %d bytes\n%.300q\nwant %d bytes\n%.300q", e.ID, len(m.Payload), m.Payload, len(e.Payload), e.Payload)
	}
	if want := sinks.ContentType(e); m.ContentType != want {
		t.Errorf("event %s: content type %q, want %q", e.ID, m.ContentType, want)
	}
}

// compareCut checks what must be true of a cut event: that it had to be cut, that
// it fits, and that it uses most of the room.
func (h Harness) compareCut(t testing.TB, e *listener.Event, m Message) {
	t.Helper()
	const headers = 4096 // more than the attributes of the suite's large events
	switch {
	case h.Limit == 0 || len(e.Payload)+headers < h.Limit:
		t.Errorf("event %s: cut although its %d bytes fit the limit of %d", e.ID, len(e.Payload), h.Limit)
	case len(m.Payload) > h.Limit:
		t.Errorf("event %s: cut to %d bytes, more than the limit of %d", e.ID, len(m.Payload), h.Limit)
	case len(m.Payload) < h.Limit-headers:
		t.Errorf("event %s: cut to %d bytes, the limit is %d", e.ID, len(m.Payload), h.Limit)
	}
	if !json.Valid(m.Payload) || !utf8.Valid(m.Payload) || !bytes.Contains(m.Payload, []byte(" bytes cut]…")) {
		t.Errorf("event %s: cut payload is not marked JSON in UTF-8: %.300q", e.ID, m.Payload)
	}
	if m.ContentType != "application/json" {
		t.Errorf("event %s: content type %q of a cut payload", e.ID, m.ContentType)
	}
}
