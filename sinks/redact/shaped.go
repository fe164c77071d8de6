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
