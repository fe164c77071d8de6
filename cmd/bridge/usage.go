package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// groupCommand is a command that only has others below it.
func groupCommand(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

// helpCommand shows the help of a command, and refuses what is none.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [command]", Short: "Show the help of a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			if of == nil || err != nil && len(rest) == 0 {
				return fmt.Errorf("no help: %w", err)
			}
			if len(rest) > 0 {
				return noCommand(of, rest)
			}
			return of.Help()
		},
	}
}

// completeStrictly adds the command for completions, which refuses what it does not know.
func completeStrictly(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() != "completion" {
			continue
		}
		cmd.Args, cmd.RunE = noCommand, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		for _, shell := range cmd.Commands() {
			shell.Args = noArguments
		}
	}
}

// noCommand refuses what is no command, and names the one that was meant.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	advice := "see " + cmd.CommandPath() + " --help"
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		advice = "did you mean " + near[0] + "?"
	}
	return fmt.Errorf("unknown command %q: %s", args[0], advice)
}

// noArguments refuses arguments of a command that takes flags only.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("%s takes no argument such as %q: see %s --help", cmd.CommandPath(), args[0], cmd.CommandPath())
}

// exclude refuses flags that are given together and exclude each other.
func exclude(cmd *cobra.Command, flags ...string) error {
	var given []string
	for _, name := range flags {
		if cmd.Flags().Changed(name) {
			given = append(given, "--"+name)
		}
	}
	if len(given) < 2 {
		return nil
	}
	return fmt.Errorf("%s exclude each other: give one of them only", strings.Join(given, " and "))
}

// wrongFlag says what is wrong with a flag in the words of the other errors.
func wrongFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		err = fmt.Errorf("unknown flag %s", dashed(unknown))
	case errors.As(err, &bare):
		err = fmt.Errorf("%s needs a value", dashed(bare))
	case errors.As(err, &invalid) && isInterval(invalid.GetFlag()):
		return fmt.Errorf("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	case errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "duration":
		return fmt.Errorf("--%s %q is no duration: write for example 10s", invalid.GetFlag().Name, invalid.GetValue())
	case errors.As(err, &invalid) && invalid.GetFlag().Value.Type() == "bool":
		return fmt.Errorf("--%s %q is neither true nor false: give --%[1]s alone, or leave it out", invalid.GetFlag().Name, invalid.GetValue())
	}
	return fmt.Errorf("%w: see %s --help", err, cmd.CommandPath())
}

// isInterval says that a flag is read by us, who say what is wrong with it.
func isInterval(flag *pflag.Flag) bool {
	_, ok := flag.Value.(*interval)
	return ok
}

// dashed is a flag as it was written.
func dashed(flag interface {
	GetSpecifiedName() string
	GetSpecifiedShortnames() string
},
) string {
	if flag.GetSpecifiedShortnames() != "" {
		return "-" + flag.GetSpecifiedName()
	}
	return "--" + flag.GetSpecifiedName()
}

// usageError is an error of the command line that shows late.
type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// ExitCode is that of wrong usage.
func (usageError) ExitCode() int { return 2 }
