package bridge

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"

	"sparkbridge/sinks/redact"
)

// Report is what Check has found out.
type Report struct {
	// Works says that no finding is a problem.
	Works   bool      `json:"works"`
	Sources []Checked `json:"sources"`
	Sinks   []Checked `json:"sinks"`
}

// Checked is a source or a sink that was asked.
type Checked struct {
	Name string `json:"name"`
	// Target is the connection string of a source, without credentials, and the kind
	// of a sink.
	Target   string    `json:"target"`
	Findings []Finding `json:"findings"`
	// SparkVersion is empty where Spark did not tell it.
	SparkVersion string `json:"sparkVersion,omitempty"`
	// Queries are the active ones of a source.
	Queries []CheckedQuery `json:"queries,omitempty"`
}

// CheckedQuery is a run of a query, and for how long the bridge may be away from it.
type CheckedQuery struct {
	ID    string `json:"id"`
	RunID string `json:"runId"`
	Name  string `json:"name,omitempty"`
	// Progress is the number of progress documents that Spark has of the run now,
	// Kept how many it keeps.
	Progress int `json:"progress"`
	Kept     int `json:"kept,omitempty"`
	// IntervalSeconds lie between two documents, as a rule, and AwaySeconds pass
	// until all that are kept are newer ones; both are left out where they are not
	// known.
	IntervalSeconds float64 `json:"intervalSeconds,omitempty"`
	AwaySeconds     float64 `json:"awaySeconds,omitempty"`
}

// State says what a finding means for a bridge that would run now.
type State string

// The states of findings.
const (
	StateOK      State = "ok"
	StateUnknown State = "unknown" // shows only while the bridge runs
	StateProblem State = "problem"
)

// Finding is one line of a report.
type Finding struct {
	State State `json:"state"`
	// About names in a word what was asked after.
	About string `json:"about"`
	// Text says what was found; of a problem what is wrong and the next step.
	Text string `json:"text"`

	configured bool // a problem that lies in the configuration
}

func (c *Checked) works(about, format string, args ...any) {
	c.add(Finding{State: StateOK, About: about, Text: fmt.Sprintf(format, args...)})
}

func (c *Checked) unknown(about, format string, args ...any) {
	c.add(Finding{State: StateUnknown, About: about, Text: fmt.Sprintf(format, args...)})
}

func (c *Checked) fails(about, format string, args ...any) {
	c.add(Finding{State: StateProblem, About: about, Text: fmt.Sprintf(format, args...)})
}

// misconfigured notes a problem that no waiting solves.
func (c *Checked) misconfigured(about, format string, args ...any) {
	c.add(Finding{State: StateProblem, About: about, Text: fmt.Sprintf(format, args...), configured: true})
}

func (c *Checked) add(f Finding) {
	f.Text = oneLine(f.Text)
	c.Findings = append(c.Findings, f)
}

// longestLine bounds what servers say; Spark's messages can hold whole plans.
const longestLine = 600

// oneLine makes a line that is safe to show of what names and servers may hold.
func oneLine(text string) string {
	text = redact.Text(text)
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	runes := []rune(strings.Join(strings.Fields(printable), " "))
	if len(runes) > longestLine {
		return string(runes[:longestLine]) + "…"
	}
	return string(runes)
}

// failing returns the problem that has to be mended first, nil for none.
func (c *Checked) failing() *Finding {
	var worst *Finding
	for i := range c.Findings {
		if f := &c.Findings[i]; f.State == StateProblem && (worst == nil || f.configured && !worst.configured) {
			worst = f
		}
	}
	return worst
}

// Err is nil where all would work. Otherwise its ExitCode is 2 if something has to
// be mended in the configuration, and 1 if something would not work now.
func (r *Report) Err() error {
	failing, configured := 0, false
	for _, part := range [][]Checked{r.Sources, r.Sinks} {
		for i := range part {
			if f := part[i].failing(); f != nil {
				failing++
				configured = configured || f.configured
			}
		}
	}
	if failing == 0 {
		return nil
	}
	err := fmt.Errorf("%d of %d sources and sinks would not work now: see what is marked as a problem", failing, len(r.Sources)+len(r.Sinks))
	if configured {
		return usage(err)
	}
	return broken(err)
}

// WriteText writes the report for people: a block for each source and sink, a line
// for each finding.
func (r *Report) WriteText(w io.Writer) error {
	var b bytes.Buffer
	for i := range r.Sources {
		r.Sources[i].write(&b, "source")
	}
	for i := range r.Sinks {
		r.Sinks[i].write(&b, "sink")
	}
	if r.Works {
		b.WriteString("All would work. No bus was taken, and nothing was sent.\n")
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (c *Checked) write(b *bytes.Buffer, what string) {
	width := 0
	for _, f := range c.Findings {
		width = max(width, len(f.About))
	}
	fmt.Fprintf(b, "%s %s: %s\n", what, c.Name, c.Target)
	for _, f := range c.Findings {
		fmt.Fprintf(b, "  %-7s  %-*s  %s\n", f.State, width, f.About, f.Text)
	}
	b.WriteString("\n")
}
