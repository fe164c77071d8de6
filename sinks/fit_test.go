package sinks_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// payloadSize counts the payload alone, and 20 bytes for the mark.
func payloadSize(e *listener.Event) int {
	if e.Truncated {
		return len(e.Payload) + 20
	}
	return len(e.Payload)
}

func fit(payload string, limit int) listener.Event {
	return sinks.Fit(listener.Event{
		Kind: listener.KindProgress, QueryID: "q", RunID: "r", BatchID: 7, Payload: []byte(payload),
	}, limit, payloadSize)
}

func TestFitLeavesAloneWhatFits(t *testing.T) {
	payload := sample(t, "progress.json")
	got := fit(string(payload), len(payload))
	if got.Truncated || !bytes.Equal(got.Payload, payload) {
		t.Errorf("changed: %+v", got)
	}
}

func TestFitCutsTheLongestTextInTheMiddle(t *testing.T) {
	trace := strings.Repeat("0123456789", 1000)
	doc := `{ "id" : "q","n":1.10 , "exception":"HEAD` + trace + `TAIL","big":123456789012345678901234567890,` +
		`"short":"` + strings.Repeat("s", 500) + `", "new":{"x":[true,null]}}` + "\n"
	given := []byte(doc)
	e := listener.Event{Payload: given}
	got := sinks.Fit(e, 3000, payloadSize)
	if !got.Truncated || e.Truncated || string(given) != doc {
		t.Errorf("marked %t, the original %t or changed", got.Truncated, e.Truncated)
	}
	cut := regexp.MustCompile(`^(.*"exception":"HEAD[0-9]+)…\[(\d+) bytes cut\]…([0-9]+TAIL".*\n)$`).FindSubmatch(got.Payload)
	if cut == nil {
		t.Fatalf("not cut as it should be: %s", got.Payload)
	}
	head, tail := string(cut[1]), string(cut[3])
	if !strings.HasPrefix(doc, head) || !strings.HasSuffix(doc, tail) {
		t.Error("other bytes than those of the middle changed")
	}
	if gone := strconv.Itoa(len(doc) - len(head) - len(tail)); gone != string(cut[2]) {
		t.Errorf("says %s bytes, %s are gone", cut[2], gone)
	}
	if n := payloadSize(&got); n > 3000 || n < 2990 {
		t.Errorf("is %d bytes, could have 3000", n)
	}
}

func TestFitCutsOneTextAfterTheOther(t *testing.T) {
	doc := fmt.Sprintf(`{"a":["%s",{"k":"%s"}],"c":"%s","runId":"r"}`,
		strings.Repeat("a", 5000), strings.Repeat("b", 9000), strings.Repeat("c", 400))
	got := fit(doc, 2000)
	if !json.Valid(got.Payload) || payloadSize(&got) > 2000 {
		t.Fatalf("%d bytes: %s", payloadSize(&got), got.Payload)
	}
	if n := bytes.Count(got.Payload, []byte(" bytes cut]…")); n != 2 {
		t.Errorf("%d texts cut, want the two longest: %s", n, got.Payload)
	}
	if !bytes.Contains(got.Payload, []byte(`"c":"`+strings.Repeat("c", 400)+`","runId":"r"}`)) {
		t.Errorf("more cut than needed: %s", got.Payload)
	}
}

// Every limit is tried, so that a cut falls on each place of each character.
func TestFitCutsBetweenCharacters(t *testing.T) {
	inside := strings.Repeat(`é很🚀\n\u00e9\ud83d\uDE00\\\"`, 30)
	doc := `{"text":"` + inside + `"}`
	for limit := len(doc) - 1; limit > 400; limit-- {
		got := fit(doc, limit)
		if payloadSize(&got) > limit {
			t.Fatalf("limit %d: %d bytes", limit, payloadSize(&got))
		}
		var parsed struct{ Text *string }
		if err := json.Unmarshal(got.Payload, &parsed); err != nil || parsed.Text == nil || strings.ContainsRune(*parsed.Text, utf8.RuneError) {
			t.Fatalf("limit %d: %v: %s", limit, err, got.Payload)
		}
		head, rest, _ := bytes.Cut(got.Payload, []byte("…["))
		_, tail, _ := bytes.Cut(rest, []byte("]…"))
		if !strings.HasPrefix(doc, string(head)) || !strings.HasSuffix(doc, string(tail)) {
			t.Fatalf("limit %d: not the ends of the document: %s", limit, got.Payload)
		}
	}
}

func TestFitKeepsIDsAndNumbersWhenTextsAreNotTheWeight(t *testing.T) {
	offsets := `{"0":` + strings.Repeat("1", 50) + strings.Repeat(`,"1":2`, 2000) + `}`
	doc := `{"id":"q","runId":"r","name":null, "batchId":7,"rate":1.10,"sources":[` + offsets + `],"sink":{"a":1}}`
	got := fit(doc, 1000)
	want := `{"id":"q","runId":"r","name":null,"batchId":7,"rate":1.10,"sources":null,"sink":null}`
	if string(got.Payload) != want || !got.Truncated {
		t.Errorf("got %s, want %s", got.Payload, want)
	}
}

func TestFitKeepsTheIDsAtLeast(t *testing.T) {
	for name, doc := range map[string]string{
		"long key":  `{"` + strings.Repeat("k", 5000) + `":1}`,
		"array":     "[" + strings.Repeat("1,", 5000) + "1]",
		"not JSON":  strings.Repeat("x", 5000),
		"deep":      strings.Repeat("[", 200_000),
		"deep JSON": strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
	} {
		if got := fit(doc, 1000); string(got.Payload) != `{"id":"q","runId":"r","batchId":7}` || !got.Truncated {
			t.Errorf("%s: %.200s", name, got.Payload)
		}
	}
	bus := sinks.Fit(listener.Event{Kind: listener.KindBus, Source: "etl", BatchID: listener.NoBatch, Payload: []byte(strings.Repeat("x", 99))}, 50, payloadSize)
	if string(bus.Payload) != `{"id":null,"runId":null}` {
		t.Errorf("bus: %s", bus.Payload)
	}
}

func FuzzFit(f *testing.F) {
	f.Add(sample(f, "progress.json"), 800)
	f.Add(sample(f, "terminated.json"), 2000)
	f.Add([]byte(`{"a":"`+strings.Repeat(`\ud83d\ude00`, 60)+`","`+strings.Repeat("k", 400)+`":"x"}`), 500)
	f.Add([]byte(`"`+strings.Repeat("\xff\\u", 200)+`"`), 300)
	f.Add([]byte(`"`+strings.Repeat("\xff", 600)+`"`), 400)
	f.Fuzz(func(t *testing.T, payload []byte, limit int) {
		given := bytes.Clone(payload)
		e := listener.Event{ID: "r:progress:7", Kind: listener.KindProgress, QueryID: "q", RunID: "r", BatchID: 7, Payload: payload}
		got := sinks.Fit(e, limit, payloadSize)
		if !bytes.Equal(payload, given) {
			t.Fatal("the original changed")
		}
		if !got.Truncated {
			if len(payload) > limit || !bytes.Equal(got.Payload, given) {
				t.Fatalf("not marked, although changed or too long")
			}
			return
		}
		if !json.Valid(got.Payload) || !utf8.Valid(got.Payload) {
			t.Fatalf("not JSON in UTF-8: %q", got.Payload)
		}
		if payloadSize(&got) > limit && string(got.Payload) != `{"id":"q","runId":"r","batchId":7}` {
			t.Fatalf("%d bytes, limit %d: %q", payloadSize(&got), limit, got.Payload)
		}
		expectSameBesidesTexts(t, given, got.Payload)
	})
}

// expectSameBesidesTexts checks that a cut document has the shape of the original
// and the same numbers, unless more than texts had to go.
func expectSameBesidesTexts(t *testing.T, before, after []byte) {
	t.Helper()
	if !bytes.Contains(after, []byte(" bytes cut]…")) {
		return
	}
	var a, b any
	if decode(before, &a) != nil || decode(after, &b) != nil {
		return
	}
	if !reflect.DeepEqual(withoutTexts(a), withoutTexts(b)) {
		t.Fatalf("more than texts changed:\n%q\n%q", before, after)
	}
}

func decode(doc []byte, to *any) error {
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	return d.Decode(to)
}

func withoutTexts(v any) any {
	switch v := v.(type) {
	case string:
		return "text"
	case []any:
		for i := range v {
			v[i] = withoutTexts(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = withoutTexts(v[k])
		}
	}
	return v
}

// BenchmarkFit cuts an exception of 6 MB, the largest that was seen on a real bus.
func BenchmarkFit(b *testing.B) {
	doc := []byte(`{"exception":"` + strings.Repeat(`\tat org.apache.spark.Größe$1.apply(Größe.scala:1)\n`, 115_000) + `"}`)
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		sinks.Fit(listener.Event{Payload: doc}, 1<<20, payloadSize)
	}
}
