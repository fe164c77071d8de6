package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sparkbridge/internal/control"
)

// dlq is the flags of the commands on dead letters.
type dlq struct {
	place
	sink   string
	all    bool
	output string
}

func dlqCommand() *cobra.Command {
	var d dlq
	cmd := groupCommand("dlq", "Work on the dead letters of a running bridge")
	cmd.Long = "Dead letters are events that a sink did not deliver: its destination refuses them (refused), they failed\n" +
		"alone for too long while others went through (alone), or they were too old (expired). They wait in the\n" +
		"journal's folder until they are tried again with success, or dropped."
	d.flags(cmd)
	outputFlag(cmd, &d.output)
	cmd.PersistentFlags().StringVar(&d.sink, "sink", "", "`name` of the sink")
	cmd.AddCommand(d.list(), d.show(),
		d.change("retry", "Try dead letters once more, in the order of their sequence",
			"What goes through is no dead letter any more; the rest stays, with the new reason. Events that came after\nthem have been delivered before them.", (*control.Client).Retry),
		d.change("drop", "Delete dead letters", "The events stay in the journal for as long as it keeps them: bridge replay can deliver them.", (*control.Client).Drop))
	return cmd
}

// client finds the bridge.
func (d *dlq) client() (*control.Client, error) {
	if err := checkOutput(d.output); err != nil {
		return nil, err
	}
	dir, err := d.folder()
	if err != nil {
		return nil, err
	}
	return control.Dial(dir), nil
}

func (d *dlq) list() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the dead letters",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := d.client()
			if err != nil {
				return err
			}
			letters, err := client.Letters(cmd.Context(), d.sink)
			if err != nil {
				return failure{err}
			}
			if d.output == "json" {
				return printJSON(cmd.OutOrStdout(), letters)
			}
			return printLetters(cmd.OutOrStdout(), letters)
		},
	}
}

func printLetters(w io.Writer, letters []control.Letter) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SINK\tSEQUENCE\tCAUSE\tATTEMPTS\tSINCE\tEVENT\tREASON")
	for _, l := range letters {
		cause := string(l.Cause)
		if l.Retry {
			cause += ", to be tried"
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%d\t%s\t%s\t%s\n", l.Sink, l.Sequence, cause, l.Attempts, l.Time.Format(time.RFC3339), l.ID, l.Reason)
	}
	return table.Flush()
}

func (d *dlq) show() *cobra.Command {
	return &cobra.Command{
		Use:   "show sequence",
		Short: "Show one dead letter with its event, as JSON",
		Args:  d.needs(oneSequence),
		RunE: func(cmd *cobra.Command, args []string) error {
			sequences, err := parseSequences(args)
			if err != nil {
				return err
			}
			client, err := d.client()
			if err != nil {
				return err
			}
			letter, err := client.Letter(cmd.Context(), d.sink, sequences[0])
			if err != nil {
				return failure{err}
			}
			return printJSON(cmd.OutOrStdout(), letter)
		},
	}
}

func oneSequence(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("name the sequence of one dead letter: bridge dlq list shows them")
	}
	return nil
}

// change is retry or drop.
func (d *dlq) change(name, short, long string, work func(*control.Client, context.Context, string, []uint64) ([]uint64, error)) *cobra.Command {
	cmd := &cobra.Command{
		Use:     name + " (sequence… | --all)",
		Short:   short,
		Long:    short + ".\n\n" + long,
		Example: "  bridge dlq " + name + " --sink events 1234 1240",
		Args:    d.needs(cobra.ArbitraryArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			if d.all == (len(args) > 0) {
				return errors.New("name the sequences of dead letters (bridge dlq list shows them), or --all")
			}
			sequences, err := parseSequences(args)
			if err != nil {
				return err
			}
			client, err := d.client()
			if err != nil {
				return err
			}
			done, err := work(client, cmd.Context(), d.sink, sequences)
			if err != nil {
				return failure{err}
			}
			if d.output == "json" {
				return printJSON(cmd.OutOrStdout(), map[string][]uint64{"sequences": done})
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %d\n", map[string]string{"retry": "to be tried again", "drop": "dropped"}[name], len(done))
			return nil
		},
	}
	cmd.Flags().BoolVar(&d.all, "all", false, "all dead letters of the sink")
	return cmd
}

// needs checks arguments and that a sink is named.
func (d *dlq) needs(arguments cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if d.sink == "" {
			return errors.New("--sink is missing: name the sink whose dead letters are meant")
		}
		return arguments(cmd, args)
	}
}

func parseSequences(args []string) ([]uint64, error) {
	var sequences []uint64
	for _, arg := range args {
		n, err := strconv.ParseUint(arg, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no sequence: use the numbers that bridge dlq list shows", arg)
		}
		sequences = append(sequences, n)
	}
	return sequences, nil
}
