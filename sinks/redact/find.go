package redact

import "bytes"

// finder goes once through a text, from byte to byte that a credential may begin at or
// stand behind. It looks back and ahead only as far as one credential reaches, so that
// the work grows with the text and no faster.
type finder struct {
	text  []byte
	cut   bool // the middle of the text may be cut out, see sinks.Fit
	found []span
}

// find returns where credentials stand in a text, in order and apart.
func find(text []byte, cut bool) []span {
	f := finder{text: text, cut: cut}
	for at := 0; at < len(text); {
		if !signs[text[at]] {
			at++
			continue
		}
		at = max(at+1, f.look(at))
	}
	return f.found
}

// signs are the bytes that look knows.
var signs = setOf("=:>-BbAIFedg" + cutMark[:1])

// look looks at a place for a credential, and returns where to go on.
func (f *finder) look(at int) int {
	switch f.text[at] {
	case '=':
		return f.named(at, at+1)
	case '>':
		if at > 0 && f.text[at-1] == '-' { // Scala prints maps so
			return f.named(at-1, at+1)
		}
		return at
	case ':':
		if bytes.HasPrefix(f.text[at:], []byte("://")) {
			return f.login(at)
		}
		return max(f.oracle(at), f.named(at, at+1))
	case '-':
		return f.pem(at)
	case 'B', 'b':
		return f.scheme(at)
	case cutMark[0]:
		return f.mark(at)
	default:
		return f.shaped(at)
	}
}

// mask notes a credential, without what is noted already. What has no letter and no
// digit is none, the mask least of all.
func (f *finder) mask(from, to int) int {
	if n := len(f.found); n > 0 {
		from = max(from, f.found[n-1].to)
	}
	if from >= to || !bytes.ContainsFunc(f.text[from:to], meaningful) {
		return to
	}
	if n := len(f.found); n > 0 && f.found[n-1].to == from {
		f.found[n-1].to = to
	} else {
		f.found = append(f.found, span{from, to})
	}
	return to
}

func meaningful(r rune) bool { return r >= 0x80 || wordBytes[byte(r)] }

// run returns where the bytes of a set end that begin at a place.
func (f *finder) run(at int, set *bytesOf) int {
	for at < len(f.text) && set[f.text[at]] {
		at++
	}
	return at
}

// has says whether the text goes on with a prefix at a place, in whatever case.
func (f *finder) has(at int, prefix string) bool {
	return at+len(prefix) <= len(f.text) && bytes.EqualFold(f.text[at:at+len(prefix)], []byte(prefix))
}

// begins says that a word may begin at a place. In text that was printed into text a
// line break is a backslash and an n.
func (f *finder) begins(at int) bool {
	return at == 0 || !wordBytes[f.text[at-1]] ||
		at > 1 && f.text[at-2] == '\\' && bytes.IndexByte([]byte("nrt"), f.text[at-1]) >= 0
}

// runAtMost is run with a bound.
func (f *finder) runAtMost(at int, set *bytesOf, most int) int {
	end := at
	for end < len(f.text) && end-at < most && set[f.text[end]] {
		end++
	}
	return end
}

// runUntil returns where the first byte of a set stands from a place on, or where no
// credential reaches any more.
func (f *finder) runUntil(at int, stops *bytesOf) int {
	const longest = 1024
	end := min(len(f.text), at+longest)
	for at < end && !stops[f.text[at]] {
		at++
	}
	return at
}

// atByte says that a byte stands at a place.
func (f *finder) atByte(at int, b byte) bool { return at < len(f.text) && f.text[at] == b }

// bytesOf is a set of bytes.
type bytesOf [256]bool

func setOf(members string) *bytesOf {
	var set bytesOf
	for i := range len(members) {
		set[members[i]] = true
	}
	return &set
}

func setExcept(members string) *bytesOf {
	set := setOf(members)
	for i := range set {
		set[i] = !set[i]
	}
	return set
}

const (
	digits  = "0123456789"
	upper   = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	letters = "abcdefghijklmnopqrstuvwxyz" + upper
)

var (
	wordBytes   = setOf(letters + digits)
	nameBytes   = setOf(letters + digits + "._-")
	base64Bytes = setOf(letters + digits + "+/=-_")
	digitBytes  = setOf(digits)
	letterBytes = setOf(letters)
	quoteBytes  = setOf("\"'`")
	spaceBytes  = setOf(" \t")
	textStops   = setOf(" \t\r\n\"'`<>\\")
)
