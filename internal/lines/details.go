package lines

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"sparkbridge/listener"
)

// KindStyle is how the kind of an event is painted.
func KindStyle(e *Event) Style {
	switch e.Kind() {
	case listener.KindStarted:
		return Green
	case listener.KindProgress:
		return Cyan
	case listener.KindIdle:
		return Dim
	case listener.KindTerminated:
		if e.Outcome == string(listener.OutcomeStopped) {
			return Yellow
		}
		return BoldRed
	case listener.KindGap:
		return BoldRed
	default:
		return Magenta
	}
}

// DetailStyle is how what an event says is painted.
func DetailStyle(e *Event) Style {
	if e.Kind() == listener.KindTerminated && e.Outcome != string(listener.OutcomeStopped) {
		return Red
	}
	return Plain
}

// Details is what the event says, by its kind, on one line, with times in a zone.
func Details(e *Event, zone *time.Location) string {
	switch e.Kind() {
	case listener.KindStarted:
		return "run " + Cut(e.RunID, 9)
	case listener.KindProgress:
		return progress(&e.Data, zone)
	case listener.KindIdle:
		return "no new data"
	case listener.KindTerminated:
		return ending(e)
	case listener.KindGap:
		return fmt.Sprintf("batches %d to %d: %s", e.Data.FromBatchID, e.Data.ToBatchID, e.Data.Reason)
	case listener.KindBus:
		return OneLine(strings.Replace(e.Data.State+": "+e.Data.Reason, ": for ", " for ", 1))
	default:
		return OneLine(e.Type)
	}
}

// progress is a batch in columns.
func progress(d *Document, zone *time.Location) string {
	rate, duration := "-", "-"
	if d.ProcessedRowsPerSecond != nil {
		rate = fmt.Sprintf("%.1f", *d.ProcessedRowsPerSecond)
	}
	if d.DurationMs.TriggerExecution != nil {
		duration = Took(time.Duration(*d.DurationMs.TriggerExecution) * time.Millisecond)
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

func stateRows(d *Document) (rows int64) {
	for _, operator := range d.StateOperators {
		rows += operator.NumRowsTotal
	}
	return rows
}

// ending is the outcome and the first line of the exception, without Java's class where Spark's
// own class of the error follows in brackets.
func ending(e *Event) string {
	first, _, _ := strings.Cut(strings.TrimSpace(e.Data.Exception), "\n")
	if class, rest, found := strings.Cut(first, ": "); found && strings.HasPrefix(rest, "[") && !strings.Contains(class, " ") {
		first = rest
	}
	return strings.TrimSuffix(e.Outcome+": "+OneLine(first), ": ")
}

// OneLine makes spaces of what would break a line or speak to the terminal.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}
