package sinks_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

func sample(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func progress(t testing.TB) listener.Event {
	return listener.Event{
		Sequence: 4711, Recorded: time.Date(2026, 3, 1, 13, 0, 0, 5000, time.FixedZone("", 3600)),
		ID: "run:progress:12", Kind: listener.KindProgress, Origin: listener.OriginBus, Source: "etl",
		UserID: "ann", SessionID: "sess", QueryID: "query", RunID: "run", Name: "orders", BatchID: 12,
		Time: time.Date(2026, 3, 1, 12, 0, 0, 120_000_000, time.UTC), Payload: sample(t, "progress.json"),
	}
}

func attributes(e listener.Event) map[string]string {
	m := map[string]string{}
	for _, a := range sinks.Attributes(&e) {
		m[a.Name] = a.Value
	}
	return m
}

// expectAttributes compares all of them.
func expectAttributes(t *testing.T, e listener.Event, want map[string]string) {
	t.Helper()
	got := attributes(e)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s is %q, want %q", name, got[name], value)
		}
		delete(got, name)
	}
	if len(got) > 0 {
		t.Errorf("attributes too many: %q", got)
	}
}

func TestAttributesOfProgress(t *testing.T) {
	expectAttributes(t, progress(t), map[string]string{
		"specversion": "1.0", "id": "run:progress:12", "source": "/spark/etl/query",
		"type": "org.apache.spark.sql.streaming.query.progress", "subject": "orders",
		"time": "2026-03-01T12:00:00.12Z", "recordedtime": "2026-03-01T12:00:00.000005Z",
		"partitionkey": "query", "sequence": "00000000000000004711", "sparkqueryid": "query", "sparkrunid": "run",
		"sparkqueryname": "orders", "sparkbatchid": "12", "sparkorigin": "bus", "sparkuserid": "ann", "sparksessionid": "sess",
	})
}

func TestAttributesOfAnEnd(t *testing.T) {
	expectAttributes(t, listener.Event{
		ID: "r:terminated", Kind: listener.KindTerminated, Source: "etl", QueryID: "q", RunID: "r", BatchID: listener.NoBatch,
		Outcome: listener.OutcomeFailed, ErrorClass: "DIVIDE_BY_ZERO", Truncated: true,
	}, map[string]string{
		"specversion": "1.0", "id": "r:terminated", "source": "/spark/etl/q", "subject": "q", "partitionkey": "q",
		"type": "org.apache.spark.sql.streaming.query.terminated", "sparkqueryid": "q", "sparkrunid": "r",
		"sparkoutcome": "failed", "sparkerrorclass": "DIVIDE_BY_ZERO", "sparktruncated": "true",
	})
}

func TestAttributesOfTheBus(t *testing.T) {
	expectAttributes(t, listener.Event{
		ID: "etl:bus:7", Kind: listener.KindBus, Origin: listener.OriginBridge, Source: "etl", BatchID: listener.NoBatch,
	}, map[string]string{
		"specversion": "1.0", "id": "etl:bus:7", "source": "/spark/etl", "subject": "etl", "partitionkey": "etl",
		"type": "dev.sparkbridge.bus", "sparkorigin": "bridge",
	})
}

// CloudEvents 1.0 demands names of a-z and 0-9, and values without control
// characters and noncharacters, whatever a query is called.
func TestAttributesAreLegal(t *testing.T) {
	e := progress(t)
	e.Name = "a\x00b\n\u0085\ufdd0\U0001ffff\xff\"\\ó" + strings.Repeat("很", 5000)
	e.QueryID = "a b/ü?#%"
	for _, a := range sinks.Attributes(&e) {
		if strings.Trim(a.Name, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			t.Errorf("name %q", a.Name)
		}
		if strings.ContainsAny(a.Value, "\x00\n\u0085\ufdd0\U0001ffff") || !utf8.ValidString(a.Value) || len(a.Value) > 1024 {
			t.Errorf("%s has %d bytes: %q", a.Name, len(a.Value), a.Value)
		}
	}
	got := attributes(e)
	if want := "a\ufffdb" + strings.Repeat("\ufffd", 5) + `"\ó很`; !strings.HasPrefix(got["sparkqueryname"], want) || !strings.Contains(got["subject"], " bytes cut]…") {
		t.Errorf("name %q, subject %q", got["sparkqueryname"], got["subject"])
	}
	if source, err := url.Parse(got["source"]); err != nil || source.Path != "/spark/etl/a b/ü?#%" {
		t.Errorf("source %q: %v", got["source"], err)
	}
	if !json.Valid(sinks.Structured(&e)) {
		t.Errorf("not JSON: %s", sinks.Structured(&e))
	}
}

func TestStructuredKeepsThePayload(t *testing.T) {
	for _, payload := range []string{
		string(sample(t, "progress.json")), string(sample(t, "terminated.json")),
		"{ \"n\": 1.10,\n\"big\":123456789012345678901234567890 , \"u\":\"<&>\\u0000\u2028\"}\n", `null`, `7`,
	} {
		e := progress(t)
		e.Payload, e.Truncated = []byte(payload), true
		doc := sinks.Structured(&e)
		if !bytes.HasSuffix(doc, []byte(`,"datacontenttype":"application/json","data":`+payload+"}")) {
			t.Errorf("payload changed: %s", doc)
		}
		var parsed map[string]any
		if err := json.Unmarshal(doc, &parsed); err != nil {
			t.Fatalf("not JSON: %v: %s", err, doc)
		}
		if parsed["sparktruncated"] != true || parsed["sequence"] != "00000000000000004711" || parsed["id"] != e.ID {
			t.Errorf("attributes: %v", parsed)
		}
	}
}

func TestStructuredCarriesWhatIsNotJSON(t *testing.T) {
	for _, payload := range []string{"{", "\xff", `"` + "\xff" + `"`, `{"a":NaN}`, " "} {
		e := progress(t)
		e.Payload = []byte(payload)
		var parsed map[string]any
		if err := json.Unmarshal(sinks.Structured(&e), &parsed); err != nil {
			t.Fatal(err)
		}
		if parsed["data_base64"] != base64.StdEncoding.EncodeToString(e.Payload) || parsed["datacontenttype"] != "application/octet-stream" || parsed["data"] != nil {
			t.Errorf("payload %q: %v", payload, parsed)
		}
	}
	e := progress(t)
	e.Payload = bytes.Repeat([]byte("["), 20<<20) // must not overflow the stack
	if got := sinks.ContentType(&e); got != "application/octet-stream" {
		t.Errorf("endless nesting has type %q", got)
	}
	e.Payload = nil
	if doc := sinks.Structured(&e); !json.Valid(doc) || bytes.Contains(doc, []byte(`"data`)) {
		t.Errorf("no payload: %s", doc)
	}
}

func TestHeaderValue(t *testing.T) {
	for in, want := range map[string]string{
		"orders-1_x": "orders-1_x", "": "", "Euro € 😀": "Euro%20%E2%82%AC%20%F0%9F%98%80", `100% "a"`: "100%25%20%22a%22",
		"\r\n\x7f~": "%0D%0A%7F~", "/spark/etl": "/spark/etl",
	} {
		if got := sinks.HeaderValue(in); got != want {
			t.Errorf("HeaderValue(%q) = %q, want %q", in, got, want)
		}
	}
}

func BenchmarkStructured(b *testing.B) {
	e := progress(b)
	b.SetBytes(int64(len(e.Payload)))
	for b.Loop() {
		sinks.Structured(&e)
	}
}

// The fast check of payloads must not differ from encoding/json's.
func FuzzContentType(f *testing.F) {
	for _, seed := range []string{"", " {} ", "[1.5e-3,-0,\"\\u00e9\"]", "01", "\"\x01\"", "nul", "{\"a\":}", "1.", "-", "\"\\x\"", "\ufeff{}"} {
		f.Add([]byte(seed))
	}
	f.Add(sample(f, "progress.json"))
	f.Add(bytes.Repeat([]byte("["), 2000))
	f.Fuzz(func(t *testing.T, payload []byte) {
		want := "application/octet-stream"
		if len(payload) == 0 {
			want = ""
		} else if json.Valid(payload) && utf8.Valid(payload) {
			want = "application/json"
		}
		if got := sinks.ContentType(&listener.Event{Payload: payload}); got != want {
			t.Fatalf("%q has type %q, want %q", payload, got, want)
		}
	})
}
