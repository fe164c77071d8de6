package redact

import (
	"bytes"
	"math"
	"strings"
)

// shape is a form of credentials that is known by how they begin.
type shape struct {
	prefix   string
	set      *bytesOf
	min, max int // bytes behind the prefix
}

const unbounded = math.MaxInt - 1

var shapes = []shape{
	{"AKIA", wordBytes, 16, 16},                  // id of an AWS access key
	{"ASIA", wordBytes, 16, 16},                  // the same for a session
	{"AIza", base64Bytes, 35, 35},                // Google API key
	{"IQoJb3JpZ2lu", base64Bytes, 40, unbounded}, // AWS session token
	{"FwoGZXIvYXdz", base64Bytes, 40, unbounded},
	{"FQoGZXIvYXdz", base64Bytes, 40, unbounded},
	{"eyJ", setOf(letters + digits + "._-"), 30, unbounded}, // JSON Web Token
	{"dapi", wordBytes, 32, 32},                             // Databricks
	{"ghp_", wordBytes, 36, 255},                            // GitHub
	{"glpat-", base64Bytes, 20, 255},                        // GitLab
}

// shaped masks a credential that is known by its form.
func (f *finder) shaped(at int) int {
	if !f.begins(at) {
		return at
	}
	for _, s := range shapes {
		if !bytes.HasPrefix(f.text[at:], []byte(s.prefix)) {
			continue
		}
		from := at + len(s.prefix)
		end := f.runAtMost(from, s.set, s.max+1)
		switch {
		case end-from < s.min || end-from > s.max:
		case strings.HasSuffix(s.prefix, "IA"):
			f.mask(at, end)
			return f.keyBehind(end)
		default:
			return f.mask(at, end)
		}
	}
	return at
}

// keyBehind masks the secret of an access key whose id ends at a place, if it follows.
func (f *finder) keyBehind(at int) int {
	const leastKey = 20
	from := at
	for from < len(f.text) && from-at < 4 && bytes.IndexByte([]byte(":/, \t|;\"'="), f.text[from]) >= 0 {
		from++
	}
	if end := f.run(from, keyBytes); end-from >= leastKey && from > at {
		return f.mask(from, end)
	}
	return at
}

var keyBytes = setOf(letters + digits + "+/=")

const (
	pemBegin, pemEnd, pemDashes = "-----BEGIN ", "-----END ", "-----"
	pemKey                      = "PRIVATE KEY"
	longestLabel                = 64
)

// pem masks the inside of a private key in PEM. One of whose ends was cut off is masked as
// far as it looks like one.
func (f *finder) pem(at int) int {
	begins, ends := f.has(at, pemBegin), f.has(at, pemEnd)
	if !begins && !ends {
		return at
	}
	label := f.text[at+len(pemEnd) : min(len(f.text), at+len(pemBegin)+longestLabel)]
	length := bytes.Index(label, []byte(pemDashes))
	if length < 0 || !bytes.Contains(label[:length], []byte(pemKey)) {
		return at
	}
	if ends {
		from := at
		for from > 0 && pemBytes[f.text[from-1]] {
			from--
		}
		f.mask(from, at)
		return at + len(pemEnd)
	}
	inside := at + len(pemEnd) + length + len(pemDashes)
	const longestKey = 64 << 10
	rest := f.text[inside:min(len(f.text), inside+longestKey)]
	if end := bytes.Index(rest, []byte(pemDashes)); end >= 0 && bytes.HasPrefix(rest[end:], []byte(pemEnd)) {
		return f.mask(inside, inside+end)
	}
	return f.mask(inside, f.run(inside, pemBytes))
}

var pemBytes = setOf(letters + digits + "+/=\\:, \t\r\n")

// cutMark is how the mark begins that stands where the middle of a text was cut out.
const cutMark, cutMarkEnd = "…[", " bytes cut]…"

// atMark says that such a mark stands at a place.
func (f *finder) atMark(at int) bool {
	if !f.cut || f.text[at] != cutMark[0] || !bytes.HasPrefix(f.text[at:], []byte(cutMark)) {
		return false
	}
	return bytes.HasPrefix(f.text[f.run(at+len(cutMark), digitBytes):], []byte(cutMarkEnd))
}

// mark masks the words at both sides of a cut: they may be what is left of a credential,
// whose name or other half is gone.
func (f *finder) mark(at int) int {
	if !f.atMark(at) {
		return at
	}
	from := at
	for from > 0 && !textStops[f.text[from-1]] && !bytes.HasSuffix(f.text[:from], []byte(Mask)) {
		from--
	}
	f.mask(from, at)
	behind := f.run(at+len(cutMark), digitBytes) + len(cutMarkEnd)
	end := behind
	for end < len(f.text) && !textStops[f.text[end]] && !f.atMark(end) {
		end++
	}
	return f.mask(behind, end)
}
