// Package lines shows events to people at a terminal: each on one line, which holds
// nothing that would speak to the terminal.
package lines

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Style is what a terminal is told before a text (SGR parameters).
type Style string

// The styles.
const (
	Plain   Style = ""
	Bold    Style = "1"
	Dim     Style = "2"
	Red     Style = "31"
	BoldRed Style = "1;31"
	Green   Style = "32"
	Yellow  Style = "33"
	Magenta Style = "35"
	Cyan    Style = "36"
)

// Paint puts a text into a style.
func Paint(how Style, text string) string {
	if how == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(how) + "m" + text + "\x1b[0m"
}

// Took writes a duration for people: 312 ms, 1.2 s, 75 s.
func Took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
}

// Cut shortens a text to so many characters.
func Cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return strings.TrimRight(string(runes[:max(0, width-1)]), " ") + "…"
}

// Visible counts the characters that take room, which those for colour do not.
func Visible(text string) (n int) {
	for text != "" {
		before, after, found := strings.Cut(text, "\x1b[")
		n += utf8.RuneCountInString(before)
		if !found {
			break
		}
		_, text, _ = strings.Cut(after, "m")
	}
	return n
}
