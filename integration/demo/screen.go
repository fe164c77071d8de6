package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"

	"sparkbridge/internal/lines"
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

func (s *screen) paint(how lines.Style, text string) string {
	if !s.colours {
		return text
	}
	return lines.Paint(how, text)
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
	fmt.Fprintf(s.w, "  %s %s ", what, s.paint(lines.Dim, "…"))
	began := time.Now()
	err := do()
	if err != nil {
		s.say("%s", s.paint(lines.Red, "failed"))
		return err
	}
	s.say("%s", s.paint(lines.Dim, lines.Took(time.Since(began))))
	return nil
}
