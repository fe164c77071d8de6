package queries

import (
	"bytes"
	"fmt"
	"strings"
)

// over is SQL in which views have the names that it calls them. In the brackets nothing but
// a query can stand, so that no statement is run. Its lines stay the same ones, for the
// positions in Spark's errors.
func over(prefix string, names []string, sql string) string {
	var with strings.Builder
	for i, name := range names {
		with.WriteString(map[bool]string{true: "WITH ", false: ", "}[i == 0])
		fmt.Fprintf(&with, "%s AS (SELECT * FROM %s%s)", name, prefix, name)
	}
	return with.String() + "(" + unended(sql) + "\n)" // a comment may end the text
}

// unended blanks the semicolons behind a query, which have no place in brackets.
func unended(sql string) string {
	text := []byte(sql)
	var behind []int
	for at := 0; at < len(text); {
		rest := text[at:]
		switch c := text[at]; {
		case c == ';':
			behind = append(behind, at)
			at++
		case bytes.HasPrefix(rest, []byte("--")):
			at += upTo(rest, "\n")
		case bytes.HasPrefix(rest, []byte("/*")):
			at += upTo(rest, "*/")
		case strings.IndexByte(" \t\r\n", c) >= 0:
			at++
		default:
			behind = behind[:0]
			at += word(rest)
		}
	}
	for _, at := range behind {
		text[at] = ' '
	}
	return string(text)
}

// upTo is how long a text is up to and with its end.
func upTo(text []byte, end string) int {
	if i := bytes.Index(text, []byte(end)); i >= 0 {
		return i + len(end)
	}
	return len(text)
}

// word is how long what begins a text is: a character, or all that stands in quotes.
func word(text []byte) int {
	quote := text[0]
	if strings.IndexByte("'\"`", quote) < 0 {
		return 1
	}
	for at := 1; at < len(text); at++ {
		switch {
		case text[at] == '\\' && quote != '`':
			at++
		case text[at] == quote:
			return at + 1
		}
	}
	return len(text)
}
