package console

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sparkbridge/connect"
	"sparkbridge/listener"
)

const (
	// glance is how often a run is asked how it comes on.
	glance = time.Second
	// calm is how long a log is left in peace between two lines on the same run.
	calm = 10 * time.Second
)

// beside tells how a run comes on while wait goes on: on a terminal in two lines that are
// written over, else in a line now and then. Programs are told nothing.
func (c *Console) beside(ctx context.Context, q *connect.StreamingQuery, wait func(context.Context) error) error {
	if c.JSON && c.screen == nil {
		return wait(ctx)
	}
	watching, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { c.watch(watching, q) })
	err := wait(ctx)
	stop()
	watcher.Wait()
	return err
}

// watch ends with ctx only: it is no reason to stop waiting that a question fails.
func (c *Console) watch(ctx context.Context, q *connect.StreamingQuery) {
	began, next := time.Now(), time.NewTicker(glance)
	defer next.Stop()
	said, told := time.Time{}, ""
	for {
		status, err := q.Status(ctx)
		if err == nil {
			var last *listener.Progress
			if last, err = q.LastProgress(ctx); err == nil {
				comes := c.state(last)
				switch {
				case c.screen != nil:
					c.screen.show(label(q)+": "+comes, fmt.Sprintf("  %s (%s)", status.Message, elapsed(time.Since(began))))
				case comes != told && time.Since(said) >= calm:
					c.note("%s: %s", label(q), comes)
					said, told = time.Now(), comes
				}
			}
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			if c.screen != nil {
				c.screen.show()
			}
			return
		}
	}
}

// state is how far a run is, on one line.
func (c *Console) state(last *listener.Progress) string {
	if last == nil {
		return "no batch yet"
	}
	return c.batch(last)
}

// elapsed is a time that people watch: 12s, 3m05s, 1h02m.
func elapsed(d time.Duration) string {
	s := int(d.Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}
