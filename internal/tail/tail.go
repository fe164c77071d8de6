// Package tail prints events as they come: of a bridge that runs, by its API, or of
// a session, by asking Spark.
package tail

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"sparkbridge/internal/lines"
)

// longestName is how many characters of a query's name are shown.
const longestName = 24

// Printer prints CloudEvents in the structured JSON form, a line each.
type Printer struct {
	W io.Writer
	// JSON prints the events as they are. Else they are lines for people, of at most
	// Width characters (0: any) and, where Colours says so, with colours.
	JSON    bool
	Colours bool
	Width   int
}

// Print prints one event. An event that is no JSON is an error.
func (p *Printer) Print(event []byte) error {
	text, err := p.line(event)
	if err != nil {
		return fmt.Errorf("print event: %w", err)
	}
	if _, err := fmt.Fprintln(p.W, text); err != nil {
		return fmt.Errorf("print event: %w", err)
	}
	return nil
}

func (p *Printer) line(event []byte) (string, error) {
	if p.JSON {
		return oneLine(event)
	}
	var e struct {
		lines.Event
		Time time.Time `json:"time"`
	}
	var other *json.UnmarshalTypeError // payloads of kinds that are not known may have any form
	if err := json.Unmarshal(event, &e); err != nil && !errors.As(err, &other) {
		return "", err
	}
	when := clock(e.Time, time.Now())
	head := fmt.Sprintf("%s %s %-*s ", p.paint(lines.Dim, when), p.paint(lines.KindStyle(&e.Event), fmt.Sprintf("%-10s", e.Kind())),
		longestName, lines.Cut(lines.OneLine(e.Subject), longestName))
	said := lines.Details(&e.Event, time.Local)
	if p.Width > 0 {
		said = lines.Cut(said, max(p.Width-lines.Visible(head), 20))
	}
	return head + p.paint(lines.DetailStyle(&e.Event), said), nil
}

// clock is the time of day, with the day where it is another one than today.
func clock(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	if at.Year() == now.Year() && at.YearDay() == now.YearDay() {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}

func (p *Printer) paint(how lines.Style, text string) string {
	if !p.Colours {
		return text
	}
	return lines.Paint(how, text)
}

// oneLine takes out the line breaks between the tokens of a document; within a text
// JSON has none.
func oneLine(event []byte) (string, error) {
	if !json.Valid(event) {
		return "", fmt.Errorf("%.40q is no JSON", event)
	}
	kept := make([]byte, 0, len(event))
	for _, c := range event {
		if c != '\n' && c != '\r' {
			kept = append(kept, c)
		}
	}
	return string(kept), nil
}
