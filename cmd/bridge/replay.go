package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"sparkbridge/internal/control"
)

// replaying is the flags of bridge replay.
type replaying struct {
	place
	sink, since, from, to string
	dryRun, list          bool
	cancel                string
	output                string
}

func replayCommand() *cobra.Command {
	var r replaying
	cmd := &cobra.Command{
		Use:   "replay --sink name (--since time | --from … [--to …] | --list | --cancel id)",
		Short: "Let a sink of a running bridge deliver events of the journal once more",
		Long: "Lets a sink deliver a part of the journal once more: the events that it wants, with the same ids. The sink\n" +
			"does that before it goes on where it was, also after a restart of the bridge.\n\n" +
			"A place is a sequence, a time such as 2026-01-31T12:00:00Z, or a duration back from now such as 2h.",
		Example: "  bridge replay --sink events --since 2h --dry-run\n" +
			"  bridge replay --sink events --from 1200 --to 1300",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return r.run(cmd) },
	}
	r.flags(cmd)
	outputFlag(cmd, &r.output)
	flags := cmd.Flags()
	flags.StringVar(&r.sink, "sink", "", "`name` of the sink")
	flags.StringVar(&r.since, "since", "", "from this `place` to now")
	flags.StringVar(&r.from, "from", "", "from this `place`")
	flags.StringVar(&r.to, "to", "", "up to this `place`, which is left out (default: now)")
	flags.BoolVar(&r.dryRun, "dry-run", false, "only count the events")
	flags.BoolVar(&r.list, "list", false, "list the replays that are not finished")
	flags.StringVar(&r.cancel, "cancel", "", "end the replay with this `id`; what it has delivered stays so")
	return cmd
}

func (r *replaying) run(cmd *cobra.Command) error {
	if err := cmp.Or(r.check(), exclude(cmd, "since", "from", "list", "cancel"), checkOutput(r.output)); err != nil {
		return err
	}
	dir, err := r.folder()
	if err != nil {
		return err
	}
	client, ctx := control.Dial(dir), cmd.Context()
	var answer []control.Replay
	var one control.Replay
	switch {
	case r.list:
		answer, err = client.Replays(ctx, r.sink)
	case r.cancel != "":
		one, err = client.Cancel(ctx, r.sink, r.cancel)
		answer = []control.Replay{one}
	default:
		one, err = client.Replay(ctx, r.sink, control.Range{From: r.since + r.from, To: r.to, DryRun: r.dryRun})
		answer = []control.Replay{one}
	}
	if err != nil {
		return failure{err}
	}
	if r.output == "json" {
		return printJSON(cmd.OutOrStdout(), answer)
	}
	r.print(cmd.OutOrStdout(), answer)
	return nil
}

func (r *replaying) check() error {
	if r.sink == "" {
		return errors.New("--sink is missing: name the sink that is to deliver")
	}
	if r.since+r.from+r.to+r.cancel == "" && !r.list {
		return errors.New("nothing is asked for: add --since, or --from and --to")
	}
	if r.since != "" && r.to != "" {
		return errors.New("--since goes up to now: use --from with --to")
	}
	return cmp.Or(checkPlace("--since", r.since), checkPlace("--from", r.from), checkPlace("--to", r.to))
}

// checkPlace refuses what is no place in a journal.
func checkPlace(flag, text string) error {
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return nil
	}
	if _, _, err := parsePlace(flag, text); err != nil {
		return fmt.Errorf("%s %q is no sequence, no time and no duration: write for example 1234, 2026-01-31T12:00:00Z or 2h", flag, text)
	}
	return nil
}

func (r *replaying) print(w io.Writer, answer []control.Replay) {
	for _, one := range answer {
		switch {
		case r.list:
			fmt.Fprintf(w, "%s: sequences %d to %d, delivered up to %d\n", one.ID, one.From, one.To-1, one.Next-1)
		case r.cancel != "":
			fmt.Fprintf(w, "%s: ended, delivered up to %d\n", one.ID, one.Next-1)
		case r.dryRun:
			fmt.Fprintf(w, "sink %s would get %d events, of sequences %d to %d\n", one.Sink, one.Events, one.From, one.To-1)
		default:
			fmt.Fprintf(w, "%s: sink %s gets %d events, of sequences %d to %d\n", one.ID, one.Sink, one.Events, one.From, one.To-1)
		}
	}
}
