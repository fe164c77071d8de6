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
