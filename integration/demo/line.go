package main

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sparkbridge/listener"
)

// line is one event for people: when it arrived, at which sinks it is, what it says. It is made
// for 80 columns; of a batch the end is cut where there are fewer than it needs.
func (s *screen) line(r row) string {
	kind, query := r.event.kind(), cut(oneLine(r.event.Subject), 20)
	head := fmt.Sprintf("%s %s %s %-8s ", s.paint(dim, r.time.Format(time.TimeOnly)), s.sinks(r),
		s.paint(kindStyle(&r.event), fmt.Sprintf("%-10s", kind)), query)
	text := details(&r.event, r.time.Location())
	if kind == listener.Progress {
		text = cut(text, max(s.width()-visible(head), 20))
	}
	return head + s.paint(detailStyle(&r.event), text)
}

// sinks has a mark for each sink that has the event.
func (s *screen) sinks(r row) string {
	marks := make([]string, 0, sinkCount)
	for sink := range sinkCount {
		mark := s.paint(green, "✓")
		if !r.at[sink] {
			mark = s.paint(yellow, "…")
		}
		marks = append(marks, sink.String()+mark)
	}
	return strings.Join(marks, " ")
}

func kindStyle(e *event) style {
	switch e.kind() {
	case listener.Started:
		return green
	case listener.Progress:
		return cyan
	case listener.Idle:
		return dim
	case listener.Terminated:
		if e.Outcome == string(listener.OutcomeStopped) {
			return yellow
		}
		return boldRed
	case listener.Gap:
		return boldRed
	default:
		return magenta
	}
}

func detailStyle(e *event) style {
	if e.kind() == listener.Terminated && e.Outcome != string(listener.OutcomeStopped) {
		return red
	}
	return plain
}

// details is what the event says, by its kind, with times in a zone.
func details(e *event, zone *time.Location) string {
	switch e.kind() {
	case listener.Started:
		return "run " + cut(e.RunID, 9)
	case listener.Progress:
		return progress(&e.Data, zone)
	case listener.Idle:
		return "no new data"
	case listener.Terminated:
		return ending(e)
	case listener.Gap:
		return fmt.Sprintf("batches %d to %d: %s", e.Data.FromBatchID, e.Data.ToBatchID, e.Data.Reason)
	case listener.BusState:
		return oneLine(strings.Replace(e.Data.State+": "+e.Data.Reason, ": for ", " for ", 1))
	default:
		return oneLine(e.Type)
	}
}

// progress is a batch in columns.
func progress(d *document, zone *time.Location) string {
	rate, duration := "-", "-"
	if d.ProcessedRowsPerSecond != nil {
		rate = fmt.Sprintf("%.1f", *d.ProcessedRowsPerSecond)
	}
	if d.DurationMs.TriggerExecution != nil {
		duration = took(time.Duration(*d.DurationMs.TriggerExecution) * time.Millisecond)
	}
	text := fmt.Sprintf("batch %-3d %4d rows %6s/s %6s", d.BatchID, d.NumInputRows, rate, duration)
	if len(d.StateOperators) > 0 {
		text += fmt.Sprintf(", %d in state", stateRows(d))
	}
	if at, err := time.Parse(time.RFC3339, d.EventTime.Watermark); err == nil && at.Unix() > 0 {
		text += ", watermark " + at.In(zone).Format(time.TimeOnly)
	}
	return text
}

func stateRows(d *document) (rows int64) {
	for _, operator := range d.StateOperators {
		rows += operator.NumRowsTotal
	}
	return rows
}

// ending is the outcome and the first line of the exception, without Java's class where Spark's
// own class of the error follows in brackets.
func ending(e *event) string {
	first, _, _ := strings.Cut(strings.TrimSpace(e.Data.Exception), "\n")
	if class, rest, found := strings.Cut(first, ": "); found && strings.HasPrefix(rest, "[") && !strings.Contains(class, " ") {
		first = rest
	}
	return strings.TrimSuffix(e.Outcome+": "+oneLine(first), ": ")
}

// oneLine makes spaces of what would break a line or speak to the terminal.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

// visible counts the characters that take room, which those for colour do not.
func visible(text string) (n int) {
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
