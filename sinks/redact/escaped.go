package redact

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// span is a part of a text.
type span struct{ from, to int }

// textBehind is the inside of the JSON string that is the value of a key, whose name ends
// at a place. Within a string a quote has a backslash, so a name in quotes that a colon
// follows is a key. A document that is cut short ends the string too.
func textBehind(doc []byte, name string, at int) (text span, ok bool) {
	if before := at - len(name) - 1; before < 0 || doc[before] != '"' || at >= len(doc) || doc[at] != '"' {
		return text, false
	}
	if at = blanks(doc, at+1); at >= len(doc) || doc[at] != ':' {
		return text, false
	}
	if at = blanks(doc, at+1); at >= len(doc) || doc[at] != '"' {
		return text, false
	}
	text = span{at + 1, len(doc)}
	for i := text.from; i < len(doc); i++ {
		switch doc[i] {
		case '\\':
			i++
		case '"':
			text.to = i
			return text, true
		}
	}
	return text, true
}

// blanks returns where the white space of JSON ends that begins at a place.
func blanks(doc []byte, at int) int {
	for at < len(doc) && (doc[at] == ' ' || doc[at] == '\t' || doc[at] == '\n' || doc[at] == '\r') {
		at++
	}
	return at
}

// findEscaped finds credentials in the inside of a JSON string. They are looked for in
// what it stands for, and their places told in what stands there.
func findEscaped(raw []byte, cut bool) []span {
	if bytes.IndexByte(raw, '\\') < 0 {
		return find(raw, cut)
	}
	spans := find(unescape(raw), cut)
	escape(raw, spans)
	return spans
}

// unescape returns what the inside of a JSON string stands for.
func unescape(raw []byte) []byte {
	text := make([]byte, 0, len(raw))
	for len(raw) > 0 {
		plain := bytes.IndexByte(raw, '\\')
		if plain < 0 {
			return append(text, raw...)
		}
		text = append(text, raw[:plain]...)
		var n int
		text, n = appendCharacter(text, raw[plain:])
		raw = raw[plain+n:]
	}
	return text
}

// escape makes places in raw of places in what it stands for. The spans are in order.
func escape(raw []byte, spans []span) {
	at, place := 0, 0 // in raw, and in the text
	var scratch [utf8.UTFMax]byte
	move := func(to int) int {
		for place < to && at < len(raw) {
			ahead := raw[at:min(len(raw), at+to-place)]
			plain := bytes.IndexByte(ahead, '\\')
			if plain < 0 {
				plain = len(ahead)
			}
			at, place = at+plain, place+plain
			if plain == len(ahead) {
				continue
			}
			character, n := appendCharacter(scratch[:0], raw[at:])
			at, place = at+n, place+len(character)
		}
		return at
	}
	for i := range spans {
		spans[i].from, spans[i].to = move(spans[i].from), move(spans[i].to)
	}
}

// appendCharacter appends what the escape sequence stands for that raw begins with, and
// returns how long that is. What is none by the rules of JSON stands for itself.
func appendCharacter(out, raw []byte) ([]byte, int) {
	if first, ok := unit(raw); ok {
		if second, ok := unit(raw[6:]); ok && utf16.IsSurrogate(first) {
			if pair := utf16.DecodeRune(first, second); pair != utf8.RuneError {
				return utf8.AppendRune(out, pair), 12
			}
		}
		return utf8.AppendRune(out, first), 6
	}
	if len(raw) > 1 {
		if i := bytes.IndexByte([]byte(`"\/bfnrt`), raw[1]); i >= 0 {
			return append(out, "\"\\/\b\f\n\r\t"[i]), 2
		}
	}
	return append(out, raw[0]), 1
}

// unit reads \uXXXX.
func unit(raw []byte) (rune, bool) {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	return rune(n), err == nil
}
