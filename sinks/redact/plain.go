package redact

import (
	"bytes"
	"strings"
)

// plainWords are values that say something about a credential, and are none.
var plainWords = map[string]bool{
	"": true, "true": true, "false": true, "yes": true, "no": true, "null": true, "none": true, "nil": true, "undefined": true,
	"string": true, "binary": true, "varchar": true, "int": true, "bigint": true, "long": true, "boolean": true, "struct": true,
	"array": true, "map": true,
}

// isPlain says that a value is no credential, whatever the name before it.
func isPlain(value []byte) bool {
	return len(value) < 32 && plainWords[strings.ToLower(string(bytes.Trim(value, brackets)))]
}

const brackets = "()[]{}<>"

// isHidden says that somebody has hidden a value before: Spark itself writes
// *********(redacted).
func isHidden(value []byte) bool {
	rest, stars := bytes.CutPrefix(value, []byte(Mask))
	rest = bytes.TrimLeft(rest, "*")
	return stars && (len(rest) == 0 || closerBytes[rest[0]] || bytes.HasPrefix(rest, []byte("(redacted")) && len(rest) <= len("(redacted)"))
}

// isProse says that what stands behind a name and a colon is a sentence or the name of a
// class, as in "Wrong password: try again" and "InvalidToken: java.io.IOException".
func isProse(value, behind []byte) bool {
	if len(value) > longestName {
		return false
	}
	value = bytes.Trim(value, brackets)
	if len(value) < 4 || isWord(value) && continues(behind) {
		return true
	}
	parts := bytes.Split(value, []byte("."))
	for _, part := range parts {
		if len(part) == 0 || !letterBytes[part[0]] || bytes.ContainsFunc(part, func(r rune) bool { return !classRune(r) }) {
			return false
		}
	}
	return len(parts) > 2
}

func isWord(value []byte) bool {
	return !bytes.ContainsFunc(value, func(r rune) bool { return r >= 0x80 || !letterBytes[byte(r)] })
}

func classRune(r rune) bool { return r < 0x80 && (wordBytes[byte(r)] || r == '$' || r == '_') }

// continues says that a sentence goes on behind a word.
func continues(behind []byte) bool {
	return len(behind) > 1 && (behind[0] == ':' || behind[0] == ' ' && (letterBytes[behind[1]] || behind[1] == '(' || behind[1] == '*'))
}

// isPort says that a value may be the port of a host, or a line of a file.
func isPort(value []byte) bool {
	return len(value) < 6 && !bytes.ContainsFunc(value, func(r rune) bool { return r < '0' || r > '9' })
}
