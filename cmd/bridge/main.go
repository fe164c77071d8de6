// Command bridge holds the listener bus of Spark Connect sessions and carries the
// events of their streaming queries to NATS, Kafka and webhooks.
//
// Each command has a file of its own, which reads flags and calls the package
// that does the work.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sparkbridge/configs"
	"sparkbridge/internal/bridge"
)

func main() { os.Exit(execute(bridge.Run, os.Args[1:], os.Stdout, os.Stderr)) }

// runner runs a configuration until ctx ends, which is no error. An error may say
// by an ExitCode method how the program is to exit.
type runner func(ctx context.Context, cfg *configs.Config, log *slog.Logger, version string) error

// execute runs one command line and returns the exit code.
func execute(run runner, args []string, stdout, stderr io.Writer) int {
	root := rootCommand(run)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		return 0
	}
	fmt.Fprintln(stderr, message(err))
	return exitCode(err)
}

func rootCommand(run runner) *cobra.Command {
	root := &cobra.Command{
		Use:   "bridge",
		Short: "Carries the events of Spark's streaming queries to NATS, Kafka and webhooks",
		Long: "bridge holds the listener bus of Spark Connect sessions, keeps every event of their\n" +
			"streaming queries in a journal, and carries it to NATS, Kafka and webhooks.",
		Version:       version(),
		SilenceErrors: true, // execute prints them, on one line
		SilenceUsage:  true,
		Args:          noCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("bridge {{.Version}}\n")
	root.SetFlagErrorFunc(wrongFlag)
	root.SetHelpCommand(helpCommand())
	root.AddCommand(runCommand(run), tailCommand(), queryCommand(), checkCommand(), dlqCommand(), replayCommand(), journalCommand(), schemaCommand(), versionCommand())
	completeStrictly(root)
	return root
}

// failure is an error of a command that was used rightly.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// ExitCode is 1: the machine or a server is at fault, not the user.
func (failure) ExitCode() int { return 1 }

// exitCode is what the error asks for; an error that does not say comes from
// reading the command line.
func exitCode(err error) int {
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return 2
}

// message is the error for people: problems of a configuration as they are, since
// editors find file:line:column in them, and everything else on one line.
func message(err error) string {
	var problems configs.Errors
	if errors.As(err, &problems) {
		return problems.Error()
	}
	return "bridge: " + strings.Join(strings.Split(strings.TrimSpace(err.Error()), "\n"), "; ")
}
