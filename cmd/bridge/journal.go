package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sparkbridge/internal/bridge"
)

// journalFlags is what all commands on a journal share.
type journalFlags struct {
	place
	output string
}

func journalCommand() *cobra.Command {
	var j journalFlags
	cmd := groupCommand("journal", "Look at a journal, also while a bridge works on it")
	j.flags(cmd)
	outputFlag(cmd, &j.output)
	cmd.AddCommand(j.info(), j.verify(), j.export(), j.forget())
	return cmd
}

// command makes one of the commands; its work gets the folder.
func (j *journalFlags) command(use, short, long string, work func(cmd *cobra.Command, dir string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: short + ".\n\n" + long, Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkOutput(j.output); err != nil {
				return err
			}
			dir, err := j.folder()
			if err != nil {
				return err
			}
			return classified(work(cmd, dir))
		},
	}
}

func (j *journalFlags) info() *cobra.Command {
	return j.command("info", "Tell what a journal holds, and how far each sink has come",
		"Sinks that are configured no more are among them: bridge journal forget drops what is kept for one.\n"+
			"It exits 1 if it meets damage, but reads the newest segment only: bridge journal verify reads all.",
		func(cmd *cobra.Command, dir string) error {
			info, err := bridge.Inspect(cmd.Context(), dir)
			if err != nil {
				return err
			}
			show := printHoldings
			if j.output == "json" {
				show = func(w io.Writer, info *bridge.Holdings) error { return printJSON(w, info) }
			}
			return errors.Join(show(cmd.OutOrStdout(), &info), info.Err())
		})
}

func printHoldings(w io.Writer, info *bridge.Holdings) error {
	running := "no bridge is running on it"
	if info.Running {
		running = "a bridge is running on it"
	}
	fmt.Fprintf(w, "%s: %s\n", info.Folder, running)
	fmt.Fprintf(w, "%d records (sequences %d to %d), %d bytes in %d segments\n", info.Next-info.First, info.First, info.Next-1, info.Bytes, info.Segments)
	if !info.Newest.IsZero() {
		fmt.Fprintf(w, "newest record of %s\n", info.Newest.Format(time.RFC3339))
	}
	if info.Torn > 0 {
		fmt.Fprintf(w, tornText, info.Torn)
	}
	if len(info.Sinks) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SINK\tNEXT\tBEHIND\tDEAD LETTERS")
	for _, s := range info.Sinks {
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\n", s.Name, s.Next, s.Behind, s.DeadLetters)
	}
	return table.Flush()
}

// tornText tells of what is no damage.
const tornText = "%d bytes of a write that was never acknowledged stand at the end; the next start cuts them\n"

func (j *journalFlags) verify() *cobra.Command {
	return j.command("verify", "Read every record and check it",
		"It changes nothing, and exits 1 if something is damaged. While a bridge works on the journal, the log is\nchecked and the state is not.",
		func(cmd *cobra.Command, dir string) error {
			report, state, err := bridge.Verify(dir)
			if err != nil {
				return err
			}
			if j.output == "json" {
				return printJSON(cmd.OutOrStdout(), map[string]any{
					"first": report.First, "next": report.Next, "segments": report.Segments, "bytes": report.Bytes, "torn": report.Torn, "state": state,
				})
			}
			unchecked := ""
			if !state {
				unchecked = "; the state is in use and was not checked"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d records in %d segments are whole%s\n", report.Next-report.First, report.Segments, unchecked)
			if report.Torn > 0 {
				fmt.Fprintf(cmd.OutOrStdout(), tornText, report.Torn)
			}
			return nil
		})
}

func (j *journalFlags) forget() *cobra.Command {
	var sink string
	cmd := j.command("forget", "Forget a sink: its place, its dead letters and its replays",
		"For sinks that are configured no more; the bridge must not be running. A sink of this name that is\nconfigured later is new.",
		func(cmd *cobra.Command, dir string) error {
			if sink == "" {
				return usageError{errors.New("--sink is missing: name the sink to forget; bridge journal info lists them")}
			}
			if err := bridge.Forget(dir, sink); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "sink %s is forgotten\n", sink)
			return nil
		})
	cmd.Flags().StringVar(&sink, "sink", "", "`name` of the sink")
	return cmd
}
