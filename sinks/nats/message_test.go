package nats

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

func dressed(t *testing.T, cfg Config, e listener.Event, limit int) (subject string, header map[string][]string, data string) {
	t.Helper()
	s, err := New(cfg, "events", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	msg, err := s.form.message(&e, s.subject.Place(&e), limit)
	if err != nil {
		t.Fatal(err)
	}
	return msg.Subject, msg.Header, string(msg.Data)
}

func TestFormatsAndHeaders(t *testing.T) {
	e := listener.Event{
		ID: "r:progress:1", Kind: listener.KindProgress, Source: "etl", QueryID: "q", RunID: "r", Name: "orders eu", BatchID: 1,
		Payload: []byte(`{"batchId":1}`),
	}
	cfg := Config{
		URL: "nats://a", Subject: "spark.{labels.team}.{kind}", Labels: sinks.Labels{"etl": {"team": "pay"}},
		Headers: map[string]string{"x-team": "{labels.team}/{query}", "x-none": "{labels.none}"},
	}
	for format, want := range map[sinks.Format]struct{ contentType, ceID, data string }{
		"":                     {"application/json", e.ID, string(e.Payload)},
		sinks.FormatBinary:     {"application/json", e.ID, string(e.Payload)},
		sinks.FormatRaw:        {"application/json", "", string(e.Payload)},
		sinks.FormatStructured: {sinks.StructuredContentType, "", string(sinks.Structured(&e))},
	} {
		cfg.Format = format
		subject, header, data := dressed(t, cfg, e, 1<<20)
		get := func(name string) string { return strings.Join(header[name], "|") }
		if subject != "spark.pay.progress" || data != want.data || get("content-type") != want.contentType || get("ce-id") != want.ceID {
			t.Errorf("%q: subject %s, headers %v, data %s", format, subject, header, data)
		}
		if _, there := header["x-none"]; get("x-team") != "pay/orders%20eu" || there || get("Nats-Msg-Id") != e.ID {
			t.Errorf("%q: headers %v", format, header)
		}
	}
}

// A replay must not be taken for a repeat by the stream, and has the event's id.
func TestAReplayHasAMessageIDOfItsOwn(t *testing.T) {
	e := listener.Event{ID: "r:idle:1", Kind: listener.KindIdle, Replay: "7"}
	_, header, _ := dressed(t, Config{URL: "nats://a", Subject: "s"}, e, 1<<20)
	if header["Nats-Msg-Id"][0] != "r:idle:1:7" || header["ce-id"][0] != "r:idle:1" {
		t.Errorf("headers %v", header)
	}
}

func TestHeadersThatAloneAreTooLargeAreRefusedForGood(t *testing.T) {
	s, err := New(Config{URL: "nats://a", Subject: "s"}, "events", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	e := listener.Event{ID: "r:idle:1", Kind: listener.KindIdle, Name: strings.Repeat("n", 900), Payload: []byte(`{"id":"q"}`)}
	_, err = s.form.message(&e, "s", 600)
	if !sinks.IsPermanent(err) || !errors.As(err, new(*sinks.OversizeError)) {
		t.Errorf("error %v", err)
	}
}

func TestHeadersAreChecked(t *testing.T) {
	for name, text := range map[string]string{
		"bad name": "x", "ce-id": "x", "Nats-Msg-Id": "x", "Content-Type": "x", "x-job": "{job}", "x-empty": "",
	} {
		err := Config{URL: "nats://a", Subject: "s", Headers: map[string]string{name: text}}.Validate()
		if err == nil || !strings.HasPrefix(err.Error(), "headers."+name+": ") {
			t.Errorf("header %s: %q: %v", name, text, err)
		}
	}
}
