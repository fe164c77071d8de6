// Package console is what the commands on queries do: they ask a session, and show the
// answers to people at a terminal, or to programs as JSON with Spark's own names.
package console

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"sparkbridge/internal/lines"
)

// Console is where answers go. Make one with New.
type Console struct {
	// JSON is for programs: one object or array for each command, one on each line where
	// there is no end to them.
	JSON bool
	// StackTrace shows that of a failure too.
	StackTrace bool

	out    io.Writer
	err    io.Writer // what is said meanwhile
	screen *screen   // it, where it is a terminal
	zone   *time.Location
}

// New is a console with answers on out, and with what is said meanwhile on err.
func New(out, err io.Writer) *Console { return &Console{out: out, err: err, zone: time.Local} }

// OnTerminal says that what is said meanwhile goes to a terminal, with lines of so many
// characters; 0 is any.
func (c *Console) OnTerminal(width int) {
	c.screen = &screen{w: c.err, width: width}
	c.err = c.screen
}

// Err is where a log may be written, above what a terminal shows at the moment.
func (c *Console) Err() io.Writer { return c.err }

// document prints one JSON document.
func (c *Console) document(value any) error {
	encoder := json.NewEncoder(c.out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false) // plans are full of arrows
	return encoder.Encode(value)
}

// line prints one JSON document on one line.
func (c *Console) line(value any) error {
	encoder := json.NewEncoder(c.out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// table prints rows of columns under a head.
func (c *Console) table(head string, rows []string) error {
	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, head)
	for _, row := range rows {
		fmt.Fprintln(t, row)
	}
	return t.Flush()
}

// fields prints names and values below each other.
func (c *Console) fields(pairs ...[2]string) error {
	t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, pair := range pairs {
		fmt.Fprintf(t, "%s\t%s\n", pair[0], lines.OneLine(pair[1]))
	}
	return t.Flush()
}

// note tells people what happens; programs wait for the answer.
func (c *Console) note(format string, args ...any) {
	if !c.JSON || c.screen != nil {
		fmt.Fprintf(c.err, format+"\n", args...)
	}
}
