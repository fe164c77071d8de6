package console

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"

	"sparkbridge/internal/lines"
)

// screen is a terminal whose last lines are written over; all else that is written to it
// stands above them. Its methods may be called by several goroutines at once.
type screen struct {
	w     io.Writer
	width int // 0 is any

	mu    sync.Mutex
	shown []string
}

// show writes lines in the place of those that are shown; without lines it takes these away.
func (s *screen) show(texts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, text := range texts {
		texts[i] = lines.OneLine(text)
		if s.width > 0 {
			texts[i] = lines.Cut(texts[i], s.width-1) // a full line would break
		}
	}
	if !slices.Equal(texts, s.shown) {
		_, _ = io.WriteString(s.w, s.away()+strings.Join(texts, "\n"))
		s.shown = texts
	}
}

// away takes the lines away that are shown, and leaves the cursor where they began.
func (s *screen) away() string {
	if len(s.shown) == 0 {
		return ""
	}
	return "\r\x1b[K" + strings.Repeat("\x1b[1A\x1b[K", len(s.shown)-1)
}

// Write writes whole lines above those that are shown.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := bytes.Join([][]byte{[]byte(s.away()), p, []byte(strings.Join(s.shown, "\n"))}, nil)
	if _, err := s.w.Write(text); err != nil {
		return 0, err
	}
	return len(p), nil
}
