package redact

import "bytes"

const (
	// longestName is how far a name is looked for, to both sides.
	longestName = 256
	// longestGap is how many spaces may stand around what separates a name and its value.
	longestGap = 8
)

// secretNames are what names of credentials end with, in lower case and without
// punctuation: spark.hadoop.fs.s3a.secret.key, AccountKey, client_secret.
var secretNames = []string{
	"password", "passwd", "pwd", "passphrase", "secret", "token", "credential", "credentials", "signature", "authorization",
	"secretkey", "accesskey", "accesskeyid", "accountkey", "sharedkey", "apikey", "privatekey", "clientkey", "encryptionkey",
	"passcode", "authuserinfo",
}

// wholeNames are names of credentials that many other words end with.
var wholeNames = []string{"sig", "pass", "sas"}

// named masks the value behind what separates it from its name, if that is the name of a
// credential. It returns where to go on.
func (f *finder) named(separator, behind int) int {
	name, quoted := f.nameBefore(separator)
	if name.from == name.to || !isSecretName(f.text[name.from:name.to]) {
		return separator
	}
	loose := f.text[separator] == ':' && !quoted
	if loose && name.from > 0 && bytes.IndexByte([]byte(":/@"), f.text[name.from-1]) >= 0 {
		return separator // a host, or a part of an ARN
	}
	for behind < len(f.text) && f.text[separator] == '=' && f.text[behind] == '=' {
		behind++
	}
	at := f.gap(behind)
	if at > behind && f.assigns(at) {
		return separator // user= password=…: the value is empty
	}
	if value, ok := f.quotedValue(at); ok {
		if isHidden(f.text[value.from:value.to]) {
			return separator
		}
		return f.mask(value.from, value.to)
	}
	at = f.skipQuote(at)
	if endsWith(f.text[name.from:name.to], "authorization") {
		if at = f.skipScheme(at); f.assigns(at) {
			return separator // AWS4-HMAC-SHA256 Credential=…
		}
	}
	end := f.valueEnd(at, loose)
	value := f.text[at:end]
	switch {
	case f.has(at, pemDashes), isHidden(value), isPlain(value):
		return separator
	case loose && (isProse(value, f.text[end:]) || at == behind && isPort(value)):
		return separator
	}
	return f.mask(at, end)
}

// nameBefore is the name that ends before a place, and whether it stands in quotes.
func (f *finder) nameBefore(at int) (name span, quoted bool) {
	for n := 0; at > 0 && spaceBytes[f.text[at-1]] && n < longestGap; n++ {
		at--
	}
	if at > 0 && quoteBytes[f.text[at-1]] {
		quoted = true
		for at--; at > 0 && f.text[at-1] == '\\'; {
			at--
		}
	}
	if at > 0 && f.text[at-1] == ']' { // of dict['password']
		for at--; at > 0 && (quoteBytes[f.text[at-1]] || f.text[at-1] == '\\'); {
			at--
		}
	}
	name = span{at, at}
	for name.from > 0 && nameBytes[f.text[name.from-1]] && name.to-name.from < longestName {
		name.from--
	}
	return name, quoted
}

func isSecretName(name []byte) bool {
	for _, store := range []string{".dfs.", ".blob."} { // fs.azure.account.key.<account>.dfs.core.windows.net
		if before, _, found := bytes.Cut(name, []byte(store)); found {
			name = before[:max(0, bytes.LastIndexByte(before, '.'))]
		}
	}
	last := name[bytes.LastIndexAny(name, "._-")+1:]
	for _, whole := range wholeNames {
		if bytes.EqualFold(last, []byte(whole)) {
			return true
		}
	}
	for _, ending := range secretNames {
		if endsWith(name, ending) {
			return true
		}
	}
	return false
}

// endsWith says that a name ends so, whatever its case and punctuation.
func endsWith(name []byte, ending string) bool {
	left := len(ending)
	for i := len(name) - 1; i >= 0 && left > 0; i-- {
		switch c := name[i]; {
		case !wordBytes[c]:
		case c|0x20 != ending[left-1]: // in lower case
			return false
		default:
			left--
		}
	}
	return left == 0
}

// gap returns where the spaces end behind a separator.
func (f *finder) gap(at int) int {
	for n := 0; at < len(f.text) && spaceBytes[f.text[at]] && n < longestGap; n++ {
		at++
	}
	return at
}

// assigns says that a name follows, and what separates it from its value.
func (f *finder) assigns(at int) bool {
	behind := f.nameBehind(at)
	return f.atByte(behind, '=') || f.has(behind, "->")
}

// nameBehind returns where a name and spaces around it end that follow, the end of the
// text if none does.
func (f *finder) nameBehind(at int) int {
	at = f.gap(at)
	if end := f.runAtMost(at, nameBytes, longestName); end > at {
		return f.gap(end)
	}
	return len(f.text)
}

// quotedValue is what stands in quotes at a place. Where text was printed into text the
// quotes have backslashes, and only their like ends the value.
func (f *finder) quotedValue(at int) (value span, ok bool) {
	open := f.backslashes(at)
	if at+open >= len(f.text) || !quoteBytes[f.text[at+open]] {
		return value, false
	}
	quote := f.text[at+open]
	value.from = at + open + 1
	for i := value.from; i < len(f.text) && f.text[i] != '\n'; i++ {
		n := f.backslashes(i)
		i += n
		switch {
		case i >= len(f.text) || f.text[i] != quote:
			if n > 0 {
				i-- // what comes behind is looked at next
			}
		case open == 0 && n%2 == 0:
			value.to = i
			return value, true
		case open > 0 && n == open:
			value.to = i - n
			return value, true
		case n < open: // of the text around
			return value, false
		}
	}
	return value, false
}

func (f *finder) backslashes(at int) (n int) {
	for at+n < len(f.text) && f.text[at+n] == '\\' {
		n++
	}
	return n
}

// skipQuote goes over a quote that nothing closes.
func (f *finder) skipQuote(at int) int {
	if open := at + f.backslashes(at); open < len(f.text) && quoteBytes[f.text[open]] {
		return open + 1
	}
	return at
}

// skipScheme goes over what stands before the credential in an Authorization header.
func (f *finder) skipScheme(at int) int {
	if at < len(f.text) && f.text[at] == '[' {
		at++
	}
	for _, scheme := range []string{"bearer ", "basic ", "negotiate ", "token ", "aws4-hmac-sha256 ", "aws "} {
		if f.has(at, scheme) {
			return f.gap(at + len(scheme))
		}
	}
	return at
}

// valueEnd returns where a value ends that has no quotes: at white space, a quote, or
// what separates it from the next name, which a colon may follow in a loose text; its last
// brackets and stops are not its own.
func (f *finder) valueEnd(from int, loose bool) int {
	if end := f.bracesEnd(from); end > from {
		return end
	}
	at := from
	for at < len(f.text) && !valueStops[f.text[at]] && !f.atMark(at) {
		if separatorBytes[f.text[at]] && (f.assigns(at+1) || loose && f.atByte(f.nameBehind(at+1), ':')) {
			break
		}
		at++
	}
	for at > from && closerBytes[f.text[at-1]] {
		at--
	}
	return at
}

// bracesEnd returns where braces end that stand around a value, as in JDBC URLs of SQL
// Server; 0 where there are none.
func (f *finder) bracesEnd(at int) int {
	if !f.atByte(at, '{') {
		return 0
	}
	inside := f.text[at:f.runAtMost(at, lineBytes, longestName)]
	end := at + bytes.IndexByte(inside, '}') + 1
	if end > at && (end == len(f.text) || valueStops[f.text[end]] || f.text[end] == ';') {
		return end
	}
	return 0
}

var (
	lineBytes      = setExcept("\r\n")
	valueStops     = setOf("\"'` \t\r\n")
	separatorBytes = setOf(",;&")
	closerBytes    = setOf(",;&.:)]}>\\")
)
