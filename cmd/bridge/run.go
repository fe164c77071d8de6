package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func runCommand(run runner) *cobra.Command {
	var input configuration
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the bridge until it is told to stop",
		Long: "Runs the bridge. SIGINT or SIGTERM stops it, within ten seconds; a second one ends it at once, with exit\n" +
			"code 1 and nothing lost.\n\n" +
			"It exits 0 when it was stopped; 1 when the journal cannot be used, the port of http.listen is taken or\n" +
			"no source can go on; and 2 for a wrong configuration, a refused token or ids that are not UUIDs. While a\n" +
			"server or session is not there yet it waits.",
		Example: "  bridge run -c bridge.yaml\n" +
			"  bridge run --remote 'sc://localhost:15002/;user_id=etl;session_id=…' --nats nats://localhost:4222",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := input.load()
			if err != nil {
				return err
			}
			log := newLogger(cmd.ErrOrStderr(), cfg.Log)
			for _, warning := range cfg.Warnings {
				log.Warn("configuration may not work", "err", warning)
			}
			err = untilSignal(stopGrace, func(ctx context.Context) error {
				return run(ctx, cfg, log, version())
			})
			if errors.Is(err, errLeft) {
				err = fmt.Errorf("%w; what was under way is repeated at the next start", err)
			}
			return classified(err)
		},
	}
	input.flags(cmd)
	return cmd
}

// classified leaves an error that says how to exit, and makes a failure of any other.
func classified(err error) error {
	var coded interface{ ExitCode() int }
	if err == nil || errors.As(err, &coded) {
		return err
	}
	return failure{err}
}
