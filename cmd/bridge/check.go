package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"gopkg.in/yaml.v3"

	"sparkbridge/configs"
	"sparkbridge/internal/bridge"
)

// checkFlags are what check has beside the configuration.
type checkFlags struct {
	output  string // empty: the default of what is printed
	connect bool
	timeout time.Duration
}

func checkCommand() *cobra.Command {
	var input configuration
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and print what it amounts to, or ask whether it would work",
		Long: "Checks the configuration, with all problems told at once, and prints it as it takes effect: defaults\n" +
			"filled in, variables expanded, secrets hidden. It exits 2 if the configuration is wrong, or names a file\n" +
			"that cannot be used. It asks no server.\n\n" +
			"With --connect it then asks Spark and each sink whether the bridge would work, and prints that instead.\n" +
			"It takes no bus, creates no session (but one of its own, to plan the queries that the bridge is to start), and\n" +
			"sends and makes nothing. It exits 1 if something would not work now, and 2 if that has to be mended in the\n" +
			"configuration, such as a token that is refused.",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.validate(cmd.Flags().Changed); err != nil {
				return err
			}
			cfg, err := input.load()
			if err != nil {
				return err
			}
			for _, warning := range cfg.Warnings {
				fmt.Fprintln(cmd.ErrOrStderr(), "warning: "+warning.Error())
			}
			if f.connect {
				return classified(ask(cmd.Context(), cmd.OutOrStdout(), f, cfg))
			}
			return classified(show(cmd.OutOrStdout(), f.output, cfg))
		},
	}
	input.flags(cmd)
	cmd.Flags().StringVarP(&f.output, "output", "o", "", "`form` of what is printed: yaml (default) or json; with --connect text (default) or json")
	cmd.Flags().BoolVar(&f.connect, "connect", false, "ask Spark and each sink whether it would work")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 10*time.Second, "with --connect: how long to wait for answers")
	return cmd
}

func (f *checkFlags) validate(given func(flag string) bool) error {
	plain, with := "yaml", ""
	if f.connect {
		plain, with = "text", " with --connect"
	}
	switch {
	case given("output") && f.output != plain && f.output != "json":
		return fmt.Errorf("--output %q is not known%s: use %s or json", f.output, with, plain)
	case given("timeout") && !f.connect:
		return errors.New("--timeout is for --connect: add that, or leave it out")
	case f.timeout <= 0:
		return fmt.Errorf("--timeout %s leaves no time: give one such as 10s", f.timeout)
	}
	return nil
}

// ask prints what Spark and the sinks answer.
func ask(ctx context.Context, w io.Writer, f checkFlags, cfg *configs.Config) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	report := bridge.Check(ctx, cfg, version())
	write := report.WriteText
	if f.output == "json" {
		write = func(w io.Writer) error { return asJSON(w, report) }
	}
	if err := write(w); err != nil {
		return err
	}
	return report.Err()
}

// show prints the configuration.
func show(w io.Writer, output string, cfg *configs.Config) error {
	if output == "json" {
		return asJSON(w, cfg)
	}
	encoder := yaml.NewEncoder(w)
	encoder.SetIndent(2)
	if err := encoder.Encode(cfg); err != nil {
		return err
	}
	return encoder.Close()
}

func asJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false) // it is read by people and programs, not by browsers
	return encoder.Encode(value)
}
