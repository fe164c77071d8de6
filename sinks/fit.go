package sinks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"sparkbridge/listener"
)

const (
	// keptText is what a cut leaves of a text, so that it can still be recognised
	// and no id, timestamp or number in quotes is ever touched.
	keptText = 256
	// keptScalar is the longest value that survives when cutting texts is not enough.
	keptScalar = 256
)

// Fit returns e, cut if need be so that size(e) is at most limit bytes; size
// tells how large an event is at the destination, all headers counted. The event
// that was given stays as it is.
//
// A cut event is marked Truncated. Of its payload the longest text is cut in the
// middle, where …[12345 bytes cut]… then stands, then the next longest until it
// fits; every other byte stays. Where texts are not what makes it large, ids,
// numbers and short texts of the outermost object remain, with null for the
// rest; and where that is not enough, the ids alone. The payload then is always
// JSON. An event whose headers alone exceed limit stays larger than that.
func Fit(e listener.Event, limit int, size func(*listener.Event) int) listener.Event {
	if size(&e) <= limit {
		return e
	}
	e.Truncated = true // before size is asked: the mark takes room too
	e.Payload = fitPayload(&e, limit-(size(&e)-len(e.Payload)))
	return e
}

func fitPayload(e *listener.Event, limit int) []byte {
	if !json.Valid(e.Payload) {
		return bareIDs(e)
	}
	payload := bytes.ToValidUTF8(e.Payload, []byte("\uFFFD"))
	if cut := cutTexts(payload, limit); len(cut) <= limit {
		return cut
	}
	if bare := bareObject(payload); bare != nil && len(bare) <= limit {
		return bare
	}
	return bareIDs(e)
}

// span is a part of a document: of a text what stands between its quotes.
type span struct{ from, to int }

func (s span) len() int { return s.to - s.from }

// cutTexts cuts the longest texts of a valid JSON document, each as far as is
// needed and possible. The result may still be too long.
func cutTexts(doc []byte, limit int) []byte {
	texts := longTexts(doc)
	slices.SortStableFunc(texts, func(a, b span) int { return cmp.Compare(b.len(), a.len()) })
	excess := len(doc) - limit
	var cuts []span
	for _, text := range texts {
		if excess <= 0 {
			break
		}
		gone := middle(doc, text, excess)
		excess -= gone.len() - len(cutMark(gone.len()))
		cuts = append(cuts, gone)
	}
	slices.SortFunc(cuts, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return withoutSpans(doc, cuts)
}

func withoutSpans(doc []byte, cuts []span) []byte {
	out, at := make([]byte, 0, len(doc)), 0
	for _, gone := range cuts {
		out = append(out, doc[at:gone.from]...)
		out = append(out, cutMark(gone.len())...)
		at = gone.to
	}
	return append(out, doc[at:]...)
}

// longTexts finds the string values of a valid JSON document that are worth
// cutting. A string is a key and not a value when a colon follows.
func longTexts(doc []byte) []span {
	var found []span
	for at := 0; ; {
		quote := bytes.IndexByte(doc[at:], '"')
		if quote < 0 {
			return found
		}
		text := span{at + quote + 1, stringEnd(doc, at+quote+1)}
		at = text.to + 1
		rest := bytes.TrimLeft(doc[min(at, len(doc)):], " \t\r\n")
		if text.len() > keptText+len(cutMark(text.len())) && !bytes.HasPrefix(rest, []byte(":")) {
			found = append(found, text)
		}
	}
}

// stringEnd returns where the quote stands that ends the string at from.
func stringEnd(doc []byte, from int) int {
	for at := from; at < len(doc); {
		switch doc[at] {
		case '"':
			return at
		case '\\':
			at += 2
		default:
			at++
		}
	}
	return len(doc)
}

// middle chooses what to take out of the middle of text, so that the document
// gets shorter by excess if the text is long enough for that. It cuts between
// characters, never within one or within an escape sequence.
func middle(doc []byte, text span, excess int) span {
	drop := min(excess+len(cutMark(text.len())), text.len()-keptText)
	head := text.from + (text.len()-drop)/2
	gone := span{text.from, text.from}
	for gone.to < head+drop {
		next := gone.to + characterLen(doc[gone.to:text.to])
		if next <= head {
			gone.from = next
		}
		gone.to = next
	}
	return gone
}

// characterLen is the length of the first character of a JSON string's inside.
// A pair of escaped surrogates is one character.
func characterLen(text []byte) int {
	switch {
	case text[0] != '\\':
		_, n := utf8.DecodeRune(text)
		return n
	case len(text) < 2 || text[1] != 'u':
		return min(2, len(text))
	case isSurrogate(text, "89abAB") && isSurrogate(text[6:], "cdefCDEF"):
		return 12
	default:
		return min(6, len(text))
	}
}

// isSurrogate tells whether text begins with \uD and one of the digits of set.
func isSurrogate(text []byte, set string) bool {
	return len(text) >= 6 && text[0] == '\\' && text[1] == 'u' &&
		(text[2] == 'd' || text[2] == 'D') && bytes.IndexByte([]byte(set), text[3]) >= 0
}

func cutMark(n int) string {
	return "…[" + strconv.Itoa(n) + " bytes cut]…"
}

// bareObject keeps the ids, numbers and short texts of an object, and has null
// for the rest. It is nil for what is not an object.
func bareObject(doc []byte) []byte {
	object := gjson.ParseBytes(doc)
	if !object.IsObject() {
		return nil
	}
	out := []byte{'{'}
	object.ForEach(func(key, value gjson.Result) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, key.Raw...), ':')
		if value.Type == gjson.JSON || len(value.Raw) > keptScalar {
			out = append(out, "null"...)
		} else {
			out = append(out, value.Raw...)
		}
		return true
	})
	return append(out, '}')
}

// bareIDs is what remains when nothing else can be kept, in Spark's own names.
func bareIDs(e *listener.Event) []byte {
	ids := struct {
		ID      *string `json:"id"`
		RunID   *string `json:"runId"`
		BatchID *int64  `json:"batchId,omitempty"`
	}{}
	if e.QueryID != "" {
		ids.ID = &e.QueryID
	}
	if e.RunID != "" {
		ids.RunID = &e.RunID
	}
	if e.Kind == listener.KindProgress && e.BatchID != listener.NoBatch {
		ids.BatchID = &e.BatchID
	}
	out, err := json.Marshal(ids)
	if err != nil {
		return []byte("null") // strings and a number: cannot happen
	}
	return out
}
