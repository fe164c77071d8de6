package sinks

import (
	"context"
	"sync"
	"time"
)

// waker ends waits early when something else is to be done.
type waker struct {
	mu     sync.Mutex
	called bool
	cancel context.CancelFunc // of the wait that is under way
}

// wake ends the wait that is under way, or else the next one.
func (k *waker) wake() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.called = true
	if k.cancel != nil {
		k.cancel()
	}
}

// take tells whether wake was called since the last take.
func (k *waker) take() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	called := k.called
	k.called = false
	return called
}

// wait returns a context that ends with ctx, when wake is called, and at a time if
// that is not zero.
func (k *waker) wait(ctx context.Context, until time.Time) (context.Context, context.CancelFunc) {
	if until.IsZero() {
		until = time.Now().Add(100 * 365 * 24 * time.Hour)
	}
	waiting, cancel := context.WithDeadline(ctx, until)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.cancel = cancel
	if k.called {
		cancel()
	}
	return waiting, cancel
}

// sleep waits for a while, or until wake is called.
func (k *waker) sleep(ctx context.Context, d time.Duration) {
	waiting, cancel := k.wait(ctx, time.Now().Add(d))
	defer cancel()
	<-waiting.Done()
}
