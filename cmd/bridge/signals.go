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

// untilSignal runs work until it ends or a signal asks to stop, which ends its
// context. Work that is still busy after the grace, or at a second signal, is
// left behind; the caller must then exit.
func untilSignal(grace time.Duration, work func(context.Context) error) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	done := make(chan error, 1)
	go func() { done <- work(ctx) }()

	select {
	case err := <-done:
		return err
	case first := <-signals:
		cancel(fmt.Errorf("stopped by signal: %s", first))
	}
	select {
	case err := <-done:
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	case second := <-signals:
		return fmt.Errorf("ended at once by a second signal (%s); what was under way is repeated at the next start", second)
	case <-time.After(grace):
		return fmt.Errorf("not stopped within %s, so ended; what was under way is repeated at the next start", grace)
	}
}
