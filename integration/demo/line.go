package main

import (
	"fmt"
	"strings"
	"time"

	"sparkbridge/internal/lines"
	"sparkbridge/listener"
)

// line is one event for people: when it arrived, at which sinks it is, what it says. It is made
// for 80 columns; of a batch the end is cut where there are fewer than it needs.
func (s *screen) line(r row) string {
	kind, query := r.event.Kind(), lines.Cut(lines.OneLine(r.event.Subject), 20)
	head := fmt.Sprintf("%s %s %s %-8s ", s.paint(lines.Dim, r.time.Format(time.TimeOnly)), s.sinks(r),
		s.paint(lines.KindStyle(&r.event), fmt.Sprintf("%-10s", kind)), query)
	text := lines.Details(&r.event, r.time.Location())
	if kind == listener.KindProgress {
		text = lines.Cut(text, max(s.width()-lines.Visible(head), 20))
	}
	return head + s.paint(lines.DetailStyle(&r.event), text)
}

// sinks has a mark for each sink that has the event.
func (s *screen) sinks(r row) string {
	marks := make([]string, 0, sinkCount)
	for sink := range sinkCount {
		mark := s.paint(lines.Green, "✓")
		if !r.at[sink] {
			mark = s.paint(lines.Yellow, "…")
		}
		marks = append(marks, sink.String()+mark)
	}
	return strings.Join(marks, " ")
}
