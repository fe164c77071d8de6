package redact

import "bytes"

// cutMark is how the mark begins that stands where the middle of a text was cut out,
// before its number.
const cutMark, cutMarkEnd = "…[", " bytes cut]…"

// atMark says that such a mark stands at a place.
func (f *finder) atMark(at int) bool {
	if !f.cut || f.text[at] != cutMark[0] || !bytes.HasPrefix(f.text[at:], []byte(cutMark)) {
		return false
	}
	return bytes.HasPrefix(f.text[f.run(at+len(cutMark), digitBytes):], []byte(cutMarkEnd))
}

// mark masks what stands beside a cut, up to the ends of the line or some words far: it
// may be what is left of a credential, whose name or other half is gone.
func (f *finder) mark(at int) int {
	if !f.atMark(at) {
		return at
	}
	const near = 256
	from := at
	for from > 0 && f.text[from-1] != '\n' && (at-from < near || !textStops[f.text[from-1]]) && !bytes.HasSuffix(f.text[:from], []byte(Mask)) {
		from--
	}
	f.mask(from, at)

	behind := f.run(at+len(cutMark), digitBytes) + len(cutMarkEnd)
	if f.has(behind, Mask) {
		return behind
	}
	end := behind
	for end < len(f.text) && f.text[end] != '\n' && (end-behind < near || !textStops[f.text[end]]) && !f.atMark(end) {
		end++
	}
	return f.mask(behind, end)
}
