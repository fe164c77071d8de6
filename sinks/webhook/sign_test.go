package webhook_test

import (
	"bytes"
	"encoding/base64"
	"io"
	"net/http"
	"strings"
	"testing"

	ce "github.com/cloudevents/sdk-go/v2/protocol/http"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"sparkbridge/listener"
	"sparkbridge/sinks"
	"sparkbridge/sinks/webhook"
)

// secret makes a secret of so many bytes.
func secret(fill string, bytes int) sinks.Secret {
	return sinks.Secret("whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(fill, bytes))))
}

// strange is an event whose id and texts are hard to carry.
func strange() listener.Event {
	return listener.Event{Sequence: 1, ID: "run é%:progress:0", Kind: listener.KindProgress, Source: "etl", QueryID: "q", RunID: "r", Name: "größe \"x\"", BatchID: 7, Payload: []byte(`{"n":1.10,"u":"<é>"}`)}
}

// Every key that signs is enough for a receiver with the official library, and
// no other key is.
func TestSignaturesByTheOfficialLibrary(t *testing.T) {
	first, second, other := secret("a", 24), secret("b", 64), secret("c", 32)
	for name, cfg := range map[string]webhook.Config{
		"one":           {Secret: first, Secrets: nil},
		"several":       {Secrets: []sinks.Secret{first, second}},
		"one is empty":  {Secrets: []sinks.Secret{first, ""}}, // as ${OLD:-} is between two changes
		"one in batch":  {Secret: first, Batch: webhook.Batch{MaxEvents: 10}},
		"without whsec": {Secret: first[len("whsec_"):]},
	} {
		t.Run(name, func(t *testing.T) {
			sink, _ := serve(t, cfg, func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				for _, c := range []struct {
					secret sinks.Secret
					valid  bool
				}{{first, true}, {second, name == "several"}, {other, false}} {
					receiver, err := standardwebhooks.NewWebhook(c.secret.Reveal())
					if err != nil {
						t.Error(err)
						return
					}
					if err := receiver.Verify(body, r.Header); (err == nil) != c.valid {
						t.Errorf("%s: %v", r.Header.Get("webhook-signature"), err)
					}
					if receiver.Verify(append(body, ' '), r.Header) == nil {
						t.Error("the signature is not of the body")
					}
				}
			})
			if acked, err := sink.Deliver(t.Context(), []listener.Event{strange()}); acked != 1 {
				t.Error(err)
			}
		})
	}
}

func TestNoSignatureWithoutASecret(t *testing.T) {
	sink, _ := serve(t, webhook.Config{}, func(_ http.ResponseWriter, r *http.Request) {
		if _, found := r.Header["Webhook-Signature"]; found {
			t.Error("signed with nothing")
		}
	})
	if _, err := sink.Deliver(t.Context(), events(1, "q")); err != nil {
		t.Error(err)
	}
}

// The official SDK reads what is sent, one event and batches, and finds it valid.
func TestCloudEventsByTheOfficialSDK(t *testing.T) {
	for name, cfg := range map[string]webhook.Config{"single": {}, "batch": {Batch: webhook.Batch{MaxEvents: 10}}} {
		t.Run(name, func(t *testing.T) {
			got := 0
			sink, _ := serve(t, cfg, func(_ http.ResponseWriter, r *http.Request) {
				if name == "single" {
					event, err := ce.NewEventFromHTTPRequest(r)
					if err != nil {
						t.Error(err)
						return
					}
					got++
					check(t, event.Validate(), event.ID(), event.Extensions()["sparkqueryname"], event.Data())
					return
				}
				all, err := ce.NewEventsFromHTTPRequest(r)
				if err != nil || len(all) != 3 {
					t.Errorf("%d events: %v", len(all), err)
				}
				for _, event := range all {
					got++
					check(t, event.Validate(), event.ID(), event.Extensions()["sparkqueryname"], event.Data())
				}
			})
			if acked, err := sink.Deliver(t.Context(), []listener.Event{strange(), strange(), strange()}); acked != 3 || got != 3 {
				t.Errorf("%d acknowledged, %d read, %v", acked, got, err)
			}
		})
	}
}

func check(t *testing.T, invalid error, id string, name any, data []byte) {
	t.Helper()
	want := strange()
	if invalid != nil || id != want.ID || name != want.Name || !bytes.Equal(data, want.Payload) {
		t.Errorf("%v: id %q, name %q, data %s", invalid, id, name, data)
	}
}
