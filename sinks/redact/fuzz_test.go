package redact

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"sparkbridge/listener"
)

func FuzzText(f *testing.F) {
	for _, text := range []string{
		`jdbc:sqlserver://h:1433;password={a;b};x`, `https://u:p@h/?sig=a%2F&b`, "-----BEGIN PRIVATE KEY-----\nab\n-----END PRIVATE KEY-----",
		`password="a\"b" token -> x, Authorization: Basic dTpw`, `{\"secret\":\"x\"}`, `AKIAIOSFODNN7EXAMPLE:abcdefghijklmnopqrstuvwxyz`,
		`pass=x…[12 bytes cut]…y`, `jdbc:oracle:thin:a/"b"@c`, `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJldGwifQ.c2ln`,
		`pass={0}0`, `token:basic QTpi`, `://:a#@0@`, `s3n://AKIAIOSFODNN7EXAMPLE:a/b@c`,
	} {
		f.Add(text, true)
	}
	f.Fuzz(func(t *testing.T, text string, cut bool) {
		raw := []byte(text)
		spans := find(raw, cut)
		checkSpans(t, raw, spans)
		masked := mask(nil, raw, spans)
		if masked == nil {
			return
		}
		if again := mask(nil, masked, find(masked, cut)); again != nil && !bytes.Equal(again, masked) {
			t.Errorf("masked again\n%q\n%q\n%q", raw, masked, again)
		}
	})
}

func checkSpans(t *testing.T, text []byte, spans []span) {
	t.Helper()
	at := 0
	for _, s := range spans {
		if s.from < at || s.to <= s.from || s.to > len(text) {
			t.Fatalf("spans %v of %d bytes %q", spans, len(text), text)
		}
		at = s.to
	}
}

// Whatever the document holds, it stays what it was but for the texts.
func FuzzEvent(f *testing.F) {
	f.Add([]byte(`{"id":"q","exception":"password=\"a\\\"b\" \ud83d\ude00 token\u003dx\n","n":1.10}`))
	f.Add([]byte("{\"exception\" :\n \"token=…[5 bytes cut]…x y\", \"exception\":\"\"}"))
	f.Add([]byte(`{"x":"\"exception\":\"pwd=x1\"","exception":"Bearer abcd1234 \u00e9"}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		e := listener.Event{Kind: listener.KindTerminated, Payload: bytes.Clone(doc), Truncated: true}
		got := Event(e)
		if !bytes.Equal(e.Payload, doc) {
			t.Fatal("the event that was given has changed")
		}
		if !got.Redacted && !bytes.Equal(got.Payload, doc) {
			t.Errorf("changed without a mark: %q", got.Payload)
		}
		if json.Valid(doc) && !json.Valid(got.Payload) || utf8.Valid(doc) && !utf8.Valid(got.Payload) {
			t.Errorf("%q\nhas become\n%q", doc, got.Payload)
		}
		if again := Event(got); !bytes.Equal(again.Payload, got.Payload) {
			t.Errorf("masked again\n%q\n%q\n%q", doc, got.Payload, again.Payload)
		}
	})
}

// The places in a JSON text are those in what it stands for.
func FuzzEscape(f *testing.F) {
	f.Add(`a\"b\\n\u00e9\ud83d\ude00\ud83dz\`, uint16(3), uint16(5))
	f.Fuzz(func(t *testing.T, raw string, from, length uint16) {
		text := unescape([]byte(raw))
		whole := 0
		for _, at := range []int{0, len(text)} {
			spans := []span{{at, at}}
			escape([]byte(raw), spans)
			if spans[0].from != whole {
				t.Errorf("%d of %q is at %d of %q", at, text, spans[0].from, raw)
			}
			whole = len(raw)
		}
		// Of places between two characters the text before them stays the same.
		at := min(int(from), len(text))
		for at > 0 && at < len(text) && !utf8.RuneStart(text[at]) {
			at--
		}
		spans := []span{{at, min(at+int(length), len(text))}}
		escape([]byte(raw), spans)
		if got := unescape([]byte(raw[:spans[0].from])); utf8.Valid(text) && string(got) != string(text[:at]) {
			t.Errorf("%q before place %d of %q, want %q", got, spans[0].from, raw, text[:at])
		}
	})
}

// However a text is made, the work grows with it and no faster: were it with the square,
// a megabyte of these would take hours.
func TestLargeTexts(t *testing.T) {
	const size = 1 << 20
	for _, unit := range []string{
		"=", ":", `password='`, `password=\"`, `token:`, `token:a.b.c`, "x://a:b", "jdbc:oracle:thin:u/", "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----a", "-eyJ", "-AIza", "…[1 bytes cut]…", "…[1 bytes cut]…password=x", `password={`, "bearer ", "basic ", `\`, `\\"`, "password=a,b&c;",
		"[']='", "eyJaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "AKIAIOSFODNN7EXAMPLE:",
	} {
		escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(unit)
		doc := `{"exception":"` + strings.Repeat(escaped, size/len(unit)) + `"}`
		got := Event(listener.Event{Kind: listener.KindTerminated, Payload: []byte(doc), Truncated: true})
		if !json.Valid(got.Payload) {
			t.Errorf("%q is no JSON any more", unit)
		}
	}
}
