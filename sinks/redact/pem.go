package redact

import "bytes"

const (
	pemBegin, pemEnd, pemDashes = "-----BEGIN ", "-----END ", "-----"
	pemKey                      = "PRIVATE KEY"
)

// pem masks the inside of a private key in PEM. One whose begin or end was cut off is
// masked as far as it looks like one.
func (f *finder) pem(at int) int {
	switch {
	case f.has(at, pemBegin):
		if inside := f.pemLabel(at + len(pemBegin)); inside > 0 {
			return f.mask(inside, f.pemInside(inside))
		}
	case f.has(at, pemEnd) && f.pemLabel(at+len(pemEnd)) > 0:
		from := at
		for from > 0 && pemBytes[f.text[from-1]] {
			from--
		}
		return f.mask(from, at) + len(pemEnd)
	}
	return at
}

// pemLabel returns where a line ends that names a private key, 0 if it does not.
func (f *finder) pemLabel(at int) int {
	end := f.runAtMost(at, labelBytes, longestName)
	if f.has(end, pemDashes) && bytes.Contains(f.text[at:end], []byte(pemKey)) {
		return end + len(pemDashes)
	}
	return 0
}

// pemInside returns where a key ends that begins at a place.
func (f *finder) pemInside(at int) int {
	const longestKey = 64 << 10
	end := bytes.Index(f.text[at:min(len(f.text), at+longestKey)], []byte(pemDashes))
	if end >= 0 && f.has(at+end, pemEnd) {
		return at + end
	}
	return f.run(at, pemBytes)
}

var (
	labelBytes = setOf(upper + digits + " ")
	pemBytes   = setOf(letters + digits + "+/=\\:, \t\r\n")
)
