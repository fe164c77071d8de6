package main

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Work that ignores its context is left when the grace is over.
func TestUntilSignalGrace(t *testing.T) {
	release := make(chan struct{})
	ended := make(chan struct{})
	err := untilSignal(time.Millisecond, func(ctx context.Context) error {
		defer close(ended)
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		<-release
		return nil
	})
	if err == nil || !strings.HasPrefix(err.Error(), "not stopped within 1ms") {
		t.Errorf("got error %v, want one that names the grace", err)
	}
	close(release)
	<-ended
}

// A signal that comes twice at once, as timeout(1) sends it, asks for a clean stop.
func TestUntilSignalEcho(t *testing.T) {
	kill := func() {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	err := untilSignal(time.Minute, func(ctx context.Context) error {
		kill()
		<-ctx.Done()
		kill()
		time.Sleep(50 * time.Millisecond) // an echo that is taken for a second signal ends it now
		return nil
	})
	if err != nil {
		t.Errorf("got error %v, want none", err)
	}
}
