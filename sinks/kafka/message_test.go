package kafka

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

func TestFormatsKeysAndHeaders(t *testing.T) {
	e := listener.Event{
		ID: "r:progress:1", Kind: listener.KindProgress, Source: "etl", QueryID: "q", RunID: "r", Name: "żółć", BatchID: 1,
		Payload: []byte(`{"batchId":1}`),
	}
	cfg := Config{
		Brokers: []string{"a:1"}, Topic: "t-{labels.team}", Labels: sinks.Labels{"etl": {"team": "pay"}},
		Headers: map[string]string{"x-query": "{labels.team}/{query}", "x-none": "{labels.none}"},
	}
	for format, want := range map[sinks.Format]struct{ contentType, ceID, value string }{
		"":                     {"application/json", e.ID, string(e.Payload)},
		sinks.FormatBinary:     {"application/json", e.ID, string(e.Payload)},
		sinks.FormatRaw:        {"application/json", "", string(e.Payload)},
		sinks.FormatStructured: {sinks.StructuredContentType, "", string(sinks.Structured(&e))},
	} {
		for key, wantKey := range map[string]string{"": "q", "{source}/{query}": "etl/żółć"} {
			cfg.Format, cfg.Key = format, key
			s, err := New(cfg, "lake", slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			msg, err := s.form.message(&e, s.topic.Place(&e), 1<<20)
			if err != nil || msg.Topic != "t-pay" || string(msg.Key) != wantKey || string(msg.Value) != want.value {
				t.Errorf("%q: %v, topic %s, key %s, value %s", format, err, msg.Topic, msg.Key, msg.Value)
			}
			headers := map[string]string{}
			for _, h := range msg.Headers {
				headers[h.Key] = string(h.Value)
			}
			_, none := headers["x-none"]
			if headers["content-type"] != want.contentType || headers["ce_id"] != want.ceID || headers["x-query"] != "pay/żółć" || none {
				t.Errorf("%q: headers %v", format, headers)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestHeadersThatAloneAreTooLargeAreRefusedForGood(t *testing.T) {
	e := listener.Event{ID: "r:idle:1", Kind: listener.KindIdle, Name: strings.Repeat("n", 900), Payload: []byte(`{"id":"q"}`)}
	_, err := (&form{}).message(&e, "t", 600)
	if !sinks.IsPermanent(err) || !errors.As(err, new(*sinks.OversizeError)) {
		t.Errorf("error %v", err)
	}
}

func TestKeysAndHeadersAreChecked(t *testing.T) {
	for want, cfg := range map[string]Config{
		"key: ":         {Brokers: []string{"a:1"}, Topic: "t", Key: "{job}"},
		"headers.ce_x:": {Brokers: []string{"a:1"}, Topic: "t", Headers: map[string]string{"ce_x": "y"}},
	} {
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}
