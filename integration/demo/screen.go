package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// screen is where the demo writes: a terminal with colours and a width, or anything else.
type screen struct {
	w        io.Writer
	terminal *os.File // nil if it is none
	colours  bool
}

func newScreen(f *os.File) *screen {
	s := &screen{w: f}
	if term.IsTerminal(int(f.Fd())) {
		s.terminal = f
		s.colours = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	}
	return s
}

// style is what a terminal is told before a text (SGR parameters).
type style string

const (
	plain   style = ""
	bold    style = "1"
	dim     style = "2"
	red     style = "31"
	boldRed style = "1;31"
	green   style = "32"
	yellow  style = "33"
	magenta style = "35"
	cyan    style = "36"
)

func (s *screen) paint(how style, text string) string {
	if !s.colours || how == plain || text == "" {
		return text
	}
	return "\x1b[" + string(how) + "m" + text + "\x1b[0m"
}

// width is how many characters fit into a line; anything that is no terminal has no limit.
func (s *screen) width() int {
	const endless = 1 << 20
	if s.terminal == nil {
		return endless
	}
	width, _, err := term.GetSize(int(s.terminal.Fd()))
	if err != nil || width < 1 {
		return endless
	}
	return width
}

// say prints a line.
func (s *screen) say(format string, args ...any) {
	fmt.Fprintf(s.w, format+"\n", args...)
}

// step prints what is being done, and then how long it took.
func (s *screen) step(what string, do func() error) error {
	fmt.Fprintf(s.w, "  %s %s ", what, s.paint(dim, "…"))
	began := time.Now()
	err := do()
	if err != nil {
		s.say("%s", s.paint(red, "failed"))
		return err
	}
	s.say("%s", s.paint(dim, took(time.Since(began))))
	return nil
}

// took writes a duration for people: 312 ms, 1.2 s, 75 s.
func took(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 9950*time.Millisecond:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
}

// cut shortens a text to so many characters.
func cut(text string, width int) string {
	runes := []rune(text)
	if len(runes) <= width {
		return text
	}
	return strings.TrimRight(string(runes[:max(0, width-1)]), " ") + "…"
}
