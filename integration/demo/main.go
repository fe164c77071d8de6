// Command demo shows the bridge at work: a real Spark Connect server, a PySpark job with three
// streaming queries, the bridge as a process of its own, a NATS server and a webhook. It prints
// each event once it has arrived.
//
//	go run ./integration/demo
//
// It runs until Ctrl-C, or for as many seconds as the environment variable DEMO_SECONDS says,
// counted from the first batch. Then it exits with 0 only if started, progress and
// terminated events have arrived at both sinks. "make demo" fetches Spark first.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"sparkbridge/integration/servers"
)

func main() { os.Exit(execute()) }

// execute runs the demo and returns the exit code.
func execute() int {
	length, err := demoSeconds(os.Getenv("DEMO_SECONDS"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), stopSignals()...)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends it at once, and the servers with it
	err = run(ctx, newScreen(os.Stdout), length)
	if err == nil || errors.Is(err, errInterrupted) && length == 0 {
		return 0
	}
	explain(os.Stderr, err)
	return 1
}

// stopSignals includes the loss of the terminal, unless nohup has that ignored.
func stopSignals() []os.Signal {
	signals := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		signals = append(signals, syscall.SIGHUP)
	}
	return signals
}

// demoSeconds reads DEMO_SECONDS; 0 means without end.
func demoSeconds(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.Atoi(text)
	if err != nil || seconds < 1 || seconds > 86400 {
		return 0, fmt.Errorf("DEMO_SECONDS is %q: set it to a whole number from 1 to 86400, or leave it out to run until Ctrl-C", text)
	}
	return time.Duration(seconds) * time.Second, nil
}

// run makes the demo's folder, which stays only if something fails: the logs are in it.
func run(ctx context.Context, out *screen, length time.Duration) error {
	dir, err := os.MkdirTemp("", "sparkbridge-demo-")
	if err != nil {
		return fmt.Errorf("make folder for the demo: %w", err)
	}
	err = newDemo(dir, out).run(ctx, length)
	var missing *servers.NotFetchedError
	if err == nil || errors.Is(err, errInterrupted) || errors.As(err, &missing) {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return &failedError{dir: dir, err: err}
}

// failedError is a failure that left its logs in a folder.
type failedError struct {
	dir string
	err error
}

func (e *failedError) Error() string { return e.err.Error() }
func (e *failedError) Unwrap() error { return e.err }

// explain shows an error and the next step.
func explain(w io.Writer, err error) {
	var missing *servers.NotFetchedError
	var failed *failedError
	switch {
	case errors.Is(err, errInterrupted):
		fmt.Fprintln(w, "\ndemo: interrupted before it had shown anything")
	case errors.As(err, &missing):
		fmt.Fprintf(w, "\ndemo: %v\n\nThe servers are not installed yet: run \"make demo\", or first\n  python3 integration/servers/fetch.py java spark-%s\n", err, servers.DefaultSpark)
	case errors.As(err, &failed):
		fmt.Fprintf(w, "\ndemo: %v\n\nAll logs are in %s (bridge.log, spark/spark.log, spark/job-1.log).\n", err, failed.dir)
	default:
		fmt.Fprintf(w, "\ndemo: %v\n", err)
	}
}
