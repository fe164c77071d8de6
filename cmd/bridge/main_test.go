package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"sparkbridge/configs"
)

// TestMain makes programs of the test binary, so that the scripts see what a user
// sees: bridge as it is, and bridge with work in the place of the composition root
// that ends in the ways that work can end.
func TestMain(m *testing.M) {
	testscript.Main(leakTest{m}, map[string]func(){
		"bridge":         main,
		"bridge-stops":   func() { os.Exit(execute(untilAsked, os.Args[1:], os.Stdout, os.Stderr)) },
		"bridge-hangs":   func() { os.Exit(execute(never, os.Args[1:], os.Stdout, os.Stderr)) },
		"bridge-fails":   func() { os.Exit(execute(failing, os.Args[1:], os.Stdout, os.Stderr)) },
		"bridge-refused": func() { os.Exit(execute(refused, os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// leakTest is goleak's check in the form that testscript wants.
type leakTest struct{ m *testing.M }

func (l leakTest) Run() int {
	code := l.m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(env *testscript.Env) error {
			for _, name := range []string{"SPARK_REMOTE", "SPARK_CONNECT_AUTHENTICATE_TOKEN", "SPARK_USER"} {
				env.Setenv(name, "")
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":      exits,
			"signal":     sendSignals,
			"tails":      tails,
			"seed":       seed,
			"cut":        cut,
			"receive":    receive,
			"start":      start,
			"until":      until,
			"socketmode": socketMode,
		},
	})
}

// untilAsked is work that stops as it should; "running" tells scripts when a
// signal finds it there.
func untilAsked(ctx context.Context, cfg *configs.Config, log *slog.Logger, version string) error {
	log.Info("running", "sources", len(cfg.Sources), "version_known", version != "", "token", cfg.Sources[0].Token, "interval", cfg.Sources[0].PollInterval)
	<-ctx.Done()
	log.Info("stopping", "cause", context.Cause(ctx).Error())
	return ctx.Err()
}

func never(_ context.Context, _ *configs.Config, log *slog.Logger, _ string) error {
	log.Info("running")
	select {}
}

func failing(context.Context, *configs.Config, *slog.Logger, string) error {
	return errors.New("open journal: disk\nis full")
}

func refused(context.Context, *configs.Config, *slog.Logger, string) error {
	return fmt.Errorf("source etl: %w", codedError{})
}

type codedError struct{}

func (codedError) Error() string { return "the server refuses the token" }
func (codedError) ExitCode() int { return 2 }
