package redact_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sparkbridge/listener"
	"sparkbridge/sinks"
	"sparkbridge/sinks/redact"
)

// samples are documents as Spark has sent them.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, pattern := range []string{"public/*.json", "recorded/*/*.json"} {
		paths, err := filepath.Glob(filepath.Join("..", "..", "listener", "testdata", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no samples %s: %v", pattern, err)
		}
		for _, path := range paths {
			if all[path], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	return all
}

func TestRealDocumentsStay(t *testing.T) {
	for path, doc := range samples(t) {
		for _, kind := range []listener.Kind{listener.KindProgress, listener.KindIdle, listener.KindTerminated, listener.KindUnknown} {
			if got := redact.Event(listener.Event{Kind: kind, Payload: doc}); got.Redacted || !bytes.Equal(got.Payload, doc) {
				t.Errorf("%s as %s:\n%s", path, kind, got.Payload)
			}
		}
		if got := redact.Text(string(doc)); got != string(doc) {
			t.Errorf("%s as a text:\n%s", path, got)
		}
	}
}

// Only the texts are touched, in which people or connectors write, and of them only what
// is masked.
func TestWhichTextsAreMasked(t *testing.T) {
	for name, c := range map[string]struct {
		kind      listener.Kind
		doc, want string
	}{
		"exception": {
			listener.KindTerminated,
			`{ "id":"q","runId":"r", "exception" : "boom \u00fc\n\tat x(y)\npassword\u003d\"a\\\"b\" \ud83d\ude00, x=1","errorClassOnException":null,"n":1.10}`,
			`{ "id":"q","runId":"r", "exception" : "boom \u00fc\n\tat x(y)\npassword\u003d\"***\" \ud83d\ude00, x=1","errorClassOnException":null,"n":1.10}`,
		},
		"descriptions": {
			listener.KindProgress,
			`{"name":"password=x1","sources":[{"description":"JDBC[url=jdbc:x://u:p@h]","startOffset":{"token":"a1"},"endOffset":"token=a1"},{"description":null},{"description":"Kafka[sig=x1]"}],"sink":{"description":"Hook[Bearer abcd1234]"},"observedMetrics":{"password=x1":{"password":"x1"}}}`,
			`{"name":"password=x1","sources":[{"description":"JDBC[url=jdbc:x://u:***@h]","startOffset":{"token":"a1"},"endOffset":"token=a1"},{"description":null},{"description":"Kafka[sig=***]"}],"sink":{"description":"Hook[Bearer ***]"},"observedMetrics":{"password=x1":{"password":"x1"}}}`,
		},
		"idle":           {listener.KindIdle, `{"description":"pwd=x1"}`, `{"description":"pwd=***"}`},
		"bus":            {listener.KindBus, `{"state":"lost","reason":"sc:\/\/u:x1@h refuses"}`, `{"state":"lost","reason":"sc:\/\/u:***@h refuses"}`},
		"unknown":        {listener.KindUnknown, `{"exception":"pwd=x1","description":"pwd=x2"}`, `{"exception":"pwd=***","description":"pwd=***"}`},
		"unknown, cut":   {listener.KindUnknown, `{"exception":"pwd=x1`, `{"exception":"pwd=***`},
		"key in a text":  {listener.KindTerminated, `{"name":"\"exception\":\"pwd=x1\"","exception":null}`, `{"name":"\"exception\":\"pwd=x1\"","exception":null}`},
		"started":        {listener.KindStarted, `{"name":"pwd=x1","exception":"pwd=x1"}`, `{"name":"pwd=x1","exception":"pwd=x1"}`},
		"empty":          {listener.KindTerminated, ``, ``},
		"text in a text": {listener.KindTerminated, `{"exception":"{\"conf\":\"{\\\"secret\\\":\\\"x1\\\"}\"}"}`, `{"exception":"{\"conf\":\"{\\\"secret\\\":\\\"***\\\"}\"}"}`},
	} {
		e := listener.Event{ID: "i", Kind: c.kind, Payload: []byte(c.doc)}
		got := redact.Event(e)
		if string(got.Payload) != c.want || got.Redacted != (c.doc != c.want) {
			t.Errorf("%s, marked %t:\n got %s\nwant %s", name, got.Redacted, got.Payload, c.want)
		}
		if string(e.Payload) != c.doc {
			t.Errorf("%s: the event that was given has changed: %s", name, e.Payload)
		}
	}
}

func TestEveryCredentialInAnException(t *testing.T) {
	for name, marked := range credentials {
		for _, escape := range []func(string) []byte{
			func(s string) []byte { out, _ := json.Marshal(s); return out },
			func(s string) []byte { // as some libraries do
				var out strings.Builder
				for _, r := range s {
					fmt.Fprintf(&out, `\u%04x`, r)
				}
				return []byte(`"` + out.String() + `"`)
			},
		} {
			doc := append(append([]byte(`{"exception":`), escape(strings.ReplaceAll(marked, "§", ""))...), '}')
			var got struct{ Exception string }
			if err := json.Unmarshal(redact.Event(listener.Event{Kind: listener.KindTerminated, Payload: doc}).Payload, &got); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if want := maskMarked(marked); got.Exception != want {
				t.Errorf("%s:\n got %s\nwant %s", name, got.Exception, want)
			}
		}
	}
}

// Of a credential that was cut in the middle, before anybody could see it whole, neither
// half passes: not where the cut is in the value, in the name, nor in a key.
func TestCutCredentials(t *testing.T) {
	const begin, end = "boom\n", " at\nx"
	for _, text := range []string{
		"password=Tr0ub4dor-and-3Tr0ub4dor-and-3", `password="Tr0ub4dor-and-3Tr0ub4dor-and-3"`, "https://u:Tr0ub4dor-and-3Tr0ub4dor-and-3@h/x", "AKIAIOSFODNN7EXAMPLE",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJldGwifQ.c2ln", "wJalrXUtnFEMIsecret=Tr0ub4dor-and-3",
		"-----BEGIN PRIVATE KEY-----\nMIIEowIBAAKC\nTr0ub4dor\n-----END PRIVATE KEY-----",
	} {
		for at := 1; at < len(text); at++ {
			doc, err := json.Marshal(map[string]string{"exception": begin + text[:at] + "…[7 bytes cut]…" + text[at:] + end})
			if err != nil {
				t.Fatal(err)
			}
			got := redact.Event(listener.Event{Kind: listener.KindTerminated, Truncated: true, Payload: doc})
			for _, part := range []string{"Tr0", "4do", "d-3", "IOSF", "MPLE", "OiJI", "zdWI", "MIIE", "AKC"} {
				if bytes.Contains(got.Payload, []byte(part)) && strings.Contains(text, part) {
					t.Errorf("cut at %d: %q is there: %s", at, part, got.Payload)
				}
			}
		}
	}
}

// record remembers what it was given.
type record struct{ events []listener.Event }

func (r *record) Deliver(_ context.Context, events []listener.Event) (int, error) {
	r.events = events
	return len(events), nil
}

func (r *record) Close() error { return nil }

func TestSinkMasksCopies(t *testing.T) {
	plain := listener.Event{ID: "1", Kind: listener.KindTerminated, Payload: []byte(`{"exception":"boom"}`)}
	careless := listener.Event{ID: "2", Kind: listener.KindTerminated, Payload: []byte(`{"exception":"pwd=x1"}`)}
	inner := &record{}
	sink := redact.Sink(inner)

	given := []listener.Event{plain, careless}
	if acked, err := sink.Deliver(t.Context(), given); acked != 2 || err != nil {
		t.Fatalf("%d, %v", acked, err)
	}
	if string(given[1].Payload) != string(careless.Payload) || given[1].Redacted {
		t.Errorf("the worker's event has changed: %s", given[1].Payload)
	}
	if got := inner.events; got[0].Redacted || string(got[0].Payload) != string(plain.Payload) || !got[1].Redacted || string(got[1].Payload) != `{"exception":"pwd=***"}` {
		t.Errorf("delivered %+v", got)
	}

	given = []listener.Event{plain}
	if _, err := sink.Deliver(t.Context(), given); err != nil || &inner.events[0] != &given[0] {
		t.Errorf("events without credentials were copied, %v", err)
	}
}

// The mark is a Boolean in JSON, and true in a header.
func TestTheMark(t *testing.T) {
	e := redact.Event(listener.Event{ID: "1", Kind: listener.KindTerminated, Source: "etl", Payload: []byte(`{"exception":"pwd=x1"}`)})
	var doc struct {
		Redacted bool                       `json:"sparkredacted"`
		Data     struct{ Exception string } `json:"data"`
	}
	if err := json.Unmarshal(sinks.Structured(&e), &doc); err != nil || !doc.Redacted || doc.Data.Exception != "pwd=***" {
		t.Errorf("%s, %v", sinks.Structured(&e), err)
	}
	list := sinks.Attributes(&e)
	if last := list[len(list)-1]; last != (sinks.Attribute{Name: "sparkredacted", Value: "true"}) {
		t.Errorf("the last attribute is %v", last)
	}
	e.Redacted = false
	if bytes.Contains(sinks.Structured(&e), []byte("sparkredacted")) {
		t.Error("marked, and nothing was masked")
	}
}

func BenchmarkProgress(b *testing.B) {
	all := samples(b)
	var docs [][]byte
	for path, doc := range all {
		if strings.Contains(path, "bus-progress") {
			docs = append(docs, doc)
		}
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		e := redact.Event(listener.Event{Kind: listener.KindProgress, Payload: docs[n%len(docs)]})
		b.SetBytes(int64(len(e.Payload)))
		n++
	}
}

// The trace is of Spark, 9 kB long. Reading it as JSON is what a consumer does at least.
func BenchmarkException(b *testing.B) {
	doc, err := os.ReadFile("../testdata/terminated.json")
	if err != nil {
		b.Fatal(err)
	}
	secret := bytes.Replace(doc, []byte(`\n\tat `), []byte(` jdbc:x://u:p@h?password=x1 \n\tat `), 1)
	for name, doc := range map[string][]byte{"nothing": doc, "masked": secret} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				redact.Event(listener.Event{Kind: listener.KindTerminated, Payload: doc})
			}
		})
	}
	b.Run("as JSON", func(b *testing.B) {
		b.SetBytes(int64(len(doc)))
		for b.Loop() {
			var v any
			if err := json.Unmarshal(doc, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
