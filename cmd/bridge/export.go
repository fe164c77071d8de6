package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"sparkbridge/internal/bridge"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// exporting is the flags of bridge journal export, and what they mean.
type exporting struct {
	from, to string
	kinds    []string
	want     bridge.Selection
}

func (j *journalFlags) export() *cobra.Command {
	var x exporting
	cmd := j.command("export", "Print the events of a journal, a CloudEvent a line",
		"A place is a sequence, or a time such as 2026-01-31T12:00:00Z.",
		func(cmd *cobra.Command, dir string) error {
			if err := x.check(); err != nil {
				return usageError{err}
			}
			out := bufio.NewWriter(cmd.OutOrStdout())
			return errors.Join(x.run(out, cmd.ErrOrStderr(), dir), out.Flush())
		})
	flags := cmd.Flags()
	flags.StringVar(&x.from, "from", "", "begin at this `place` (default: the oldest)")
	flags.StringVar(&x.to, "to", "", "end before this `place`")
	flags.StringSliceVar(&x.kinds, "kind", nil, "only events of these `kinds`")
	flags.StringSliceVar(&x.want.Queries, "query", nil, "only events of queries with these `names`; * stands for any text. Those without a name, such as the states of the bus, always come")
	flags.StringSliceVar(&x.want.Sources, "source", nil, "only events of these `sources`")
	return cmd
}

// check reads the words of the flags.
func (x *exporting) check() (err error) {
	if x.want.First, x.want.Since, err = parsePlace("--from", x.from); err != nil {
		return err
	}
	if x.want.End, x.want.Until, err = parsePlace("--to", x.to); err != nil {
		return err
	}
	for _, name := range x.kinds {
		kind, err := listener.ParseKind(name)
		if err != nil {
			return fmt.Errorf("--kind: %w", err)
		}
		x.want.Kinds = append(x.want.Kinds, kind)
	}
	return nil
}

func (x *exporting) run(w, notes io.Writer, dir string) error {
	return bridge.Export(dir, x.want, func(e listener.Event) error { return printLine(w, sinks.Structured(&e)) },
		func(gone *journal.RetiredError) { fmt.Fprintln(notes, gone) })
}

// printLine prints a JSON document on one line.
func printLine(w io.Writer, doc []byte) error {
	if bytes.ContainsAny(doc, "\n\r") {
		var line bytes.Buffer
		if err := json.Compact(&line, doc); err != nil {
			return fmt.Errorf("compact event: %w", err)
		}
		doc = line.Bytes()
	}
	_, err := fmt.Fprintf(w, "%s\n", doc)
	return err
}

func parsePlace(flag, text string) (sequence uint64, at time.Time, err error) {
	if text == "" {
		return 0, at, nil
	}
	if sequence, err = strconv.ParseUint(text, 10, 64); err == nil {
		return sequence, at, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		return 0, at, fmt.Errorf("%s %q is no sequence and no time: write for example 1234 or 2026-01-31T12:00:00Z", flag, text)
	}
	return 0, at, nil
}
