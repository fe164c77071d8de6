package console

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
)

// seen is what a terminal shows that was told a text: lines, and the few controls that are
// used here.
func seen(told string) string {
	screen, row, column := []string{""}, 0, 0
	for told != "" {
		switch {
		case strings.HasPrefix(told, "\x1b[K"):
			screen[row], told = screen[row][:column], told[3:]
		case strings.HasPrefix(told, "\x1b[1A"):
			row, told = row-1, told[4:]
		case told[0] == '\r':
			column, told = 0, told[1:]
		case told[0] == '\n':
			row, column, told = row+1, 0, told[1:]
			if row == len(screen) {
				screen = append(screen, "")
			}
		default:
			screen[row] = screen[row][:column] + told[:1]
			column, told = column+1, told[1:]
		}
	}
	return strings.TrimRight(strings.Join(screen, "\n"), "\n")
}

func TestScreen(t *testing.T) {
	var told bytes.Buffer
	s := &screen{w: &told, width: 10}
	steps := []struct {
		do   func()
		want string
	}{
		{func() { s.show() }, ""},
		{func() { s.show("one", "two") }, "one\ntwo"},
		{func() { s.show("1", "2") }, "1\n2"},
		{func() { fmt.Fprintln(s, "a log line, of any length") }, "a log line, of any length\n1\n2"},
		{func() { fmt.Fprintln(s, "another") }, "a log line, of any length\nanother\n1\n2"},
		{func() { s.show("1234567890", "a\x1b[2Jb") }, "a log line, of any length\nanother\n12345678.\na [2Jb"},
		{func() { s.show("one") }, "a log line, of any length\nanother\none"},
		{func() { s.show() }, "a log line, of any length\nanother"},
		{func() { fmt.Fprintln(s, "last") }, "a log line, of any length\nanother\nlast"},
	}
	for i, step := range steps {
		step.do()
		if got := strings.ReplaceAll(seen(strings.ReplaceAll(told.String(), "…", ".")), " \n", "\n"); got != step.want {
			t.Errorf("after step %d the terminal shows\n%q, want\n%q", i, got, step.want)
		}
	}
	before := told.Len()
	s.show("same")
	once := told.Len()
	s.show("same")
	if told.Len() != once || once == before {
		t.Error("lines that are shown already were written again")
	}
}

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 59900 * time.Millisecond: "59s", 185 * time.Second: "3m05s", 2*time.Hour + 3*time.Minute: "2h03m"} {
		if got := elapsed(d); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
}
