package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// stopGrace is how long a clean stop may take: supervisors that have sent SIGTERM
// send SIGKILL some seconds later, and the bus should be free before that.
const stopGrace = 10 * time.Second

// echo is for how long the same signal again is the same wish: timeout(1) and other
// parents send theirs to the process and to its group.
const echo = 500 * time.Millisecond

// errLeft is work that did not end by itself.
var errLeft = errors.New("ended")

// untilSignal runs work until it ends or a signal asks to stop, which ends its
// context. Work that is still busy after the grace, or at a second signal, is
// left behind, which is an errLeft; the caller must then exit.
func untilSignal(grace time.Duration, work func(context.Context) error) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()

	var first os.Signal
	select {
	case err := <-done:
		return err
	case first = <-signals:
		cancel(fmt.Errorf("stopped by signal: %s", first))
	}
	asked, over := time.Now(), time.After(grace)
	for {
		select {
		case err := <-done:
			if errors.Is(err, context.Canceled) {
				return nil
			}
			return err
		case second := <-signals:
			if second == first && time.Since(asked) < echo {
				continue
			}
			return fmt.Errorf("%w at once by a second signal (%s)", errLeft, second)
		case <-over:
			return fmt.Errorf("not stopped within %s, so %w", grace, errLeft)
		}
	}
}
