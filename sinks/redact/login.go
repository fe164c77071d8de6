package redact

import (
	"bytes"
	"encoding/base64"
)

// login masks the password in scheme://user:password@host, and what stands before the
// host of an http URL without a colon. Object stores have their container there:
// abfss://container@account stays as it is.
func (f *finder) login(at int) int {
	from := at + len("://")
	end := f.runUntil(from, loginStops)
	sign := bytes.LastIndexByte(f.text[from:end], '@')
	colon := bytes.IndexByte(f.text[from:end], ':')
	switch {
	case colon >= 0 && f.has(from+colon+1, Mask+"@"): // it is done
	case sign >= 0 && colon >= 0 && colon < sign:
		f.shaped(from) // the user may be an access key
		return f.mask(from+colon+1, from+sign)
	case sign >= 0 && (f.precedes(at, "http") || f.precedes(at, "https")):
		return f.mask(from, from+sign)
	case sign < 0 && colon >= 0:
		return f.strangeLogin(from, from+colon+1, end)
	}
	return from
}

// strangeLogin masks a password with characters that a URL should not have. What is no
// port of a host, and has an @ behind it, is a password.
func (f *finder) strangeLogin(user, from, end int) int {
	if f.run(from, digitBytes) == end || f.atByte(user, '[') { // an IPv6 address
		return user
	}
	if sign := bytes.IndexByte(f.text[end:f.runUntil(end, textStops)], '@'); sign >= 0 {
		f.shaped(user)
		return f.mask(from, end+sign)
	}
	return user
}

// oracle masks the password of jdbc:oracle:thin:user/password@host.
func (f *finder) oracle(at int) int {
	if !f.precedes(at, "jdbc:oracle:thin") && !f.precedes(at, "jdbc:oracle:oci") {
		return at
	}
	user := at + 1
	slash := f.runUntil(user, oracleStops)
	if !f.atByte(slash, '/') {
		return at
	}
	if value, ok := f.quotedValue(slash + 1); ok {
		return f.mask(value.from, value.to)
	}
	end := f.runUntil(slash+1, textStops)
	if sign := bytes.IndexByte(f.text[slash+1:end], '@'); sign >= 0 {
		return f.mask(slash+1, slash+1+sign)
	}
	return at
}

// scheme masks what follows Bearer or Basic, if it looks like it: both are words too.
func (f *finder) scheme(at int) int {
	if !f.begins(at) {
		return at
	}
	if from := f.word(at, "bearer"); from > 0 {
		token := bytes.TrimRight(f.text[from:f.run(from, bearerBytes)], ".")
		if len(token) >= 32 || len(token) >= 8 && bytes.ContainsAny(token, digits) {
			return f.mask(from, from+len(token))
		}
	}
	if from := f.word(at, "basic"); from > 0 {
		end := f.run(from, base64Bytes)
		if plain, err := base64.StdEncoding.DecodeString(string(f.text[from:end])); err == nil && bytes.IndexByte(plain, ':') >= 0 {
			return f.mask(from, end)
		}
	}
	return at
}

// word returns where that begins what follows a word and a space, 0 if it is not there.
func (f *finder) word(at int, word string) int {
	behind := at + len(word)
	if !f.has(at, word) || f.gap(behind) == behind {
		return 0
	}
	return f.gap(behind)
}

// precedes says that a text stands before a place.
func (f *finder) precedes(at int, text string) bool {
	return at >= len(text) && f.has(at-len(text), text)
}

var (
	loginStops  = setOf(" \t\r\n\"'`<>/?#,;\\")
	oracleStops = setOf(" \t\r\n\"'`<>/@\\")
	bearerBytes = setOf(letters + digits + "._~+/-=")
)
