package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"sparkbridge/internal/lines"
)

const (
	// attachWithin bounds the wait for the bus, batchWithin that for the first batch, endWithin
	// that for the ends of queries.
	attachWithin = time.Minute
	batchWithin  = 2 * time.Minute
	endWithin    = 15 * time.Second
	// look is how often something is done that no message asks for.
	look = 100 * time.Millisecond
)

// attach shows events until the bridge holds the bus.
func (d *demo) attach(ctx context.Context) error {
	deadline := time.Now().Add(attachWithin)
	err := d.watch(ctx, func() bool { return d.board.attached() || time.Now().After(deadline) })
	if err == nil && ctx.Err() == nil && !d.board.attached() {
		return fmt.Errorf("the bridge has not taken the bus within %s%s", attachWithin, tail(d.in("bridge.log")))
	}
	return err
}

// show has the job start its queries, and shows events until ctx ends, or for a time that begins
// with the first batch, since how long Spark needs for that differs much between machines.
func (d *demo) show(ctx context.Context, length time.Duration) error {
	d.out.say("\nThe job starts three queries:")
	for _, q := range queries {
		if err := d.job.Send("start " + q.kind + "=" + q.name); err != nil {
			return err
		}
		d.out.say("  %-8s  %s", q.name, d.out.paint(lines.Dim, q.remark))
	}
	if length == 0 {
		d.out.say("\nEvents until Ctrl-C:\n")
		return d.watch(ctx, d.orphaned)
	}
	d.out.say("\nEvents for %s from the first batch:\n", lines.Took(length))
	ctx, cancel := context.WithTimeout(ctx, batchWithin+length)
	defer cancel()
	return d.watch(ctx, func() bool {
		return d.orphaned() || !d.board.first.IsZero() && time.Since(d.board.first) > length
	})
}

// orphaned says that whoever started the demo is gone, such as a "go run" that was killed.
func (d *demo) orphaned() bool { return os.Getppid() != d.parent }

// watch shows what arrives, and starts the bridge again when it was killed, until done says so or
// ctx ends. It is an error when something else ends by itself.
func (d *demo) watch(ctx context.Context, done func() bool) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for !done() {
		select {
		case a := <-d.arrivals:
			d.board.add(a)
		case f := <-d.facts:
			if f.Fact == "error" {
				return fmt.Errorf("the job could not do what it was told: %s", f.Message)
			}
		case <-d.bridge.Exited():
			if err := d.revive(); err != nil {
				return err
			}
		case <-d.spark.Exited():
			return fmt.Errorf("the Spark server has ended by itself%s", tail(d.in("spark", "spark.log")))
		case <-d.job.Exited():
			return fmt.Errorf("the job has ended by itself%s", tail(d.in("spark", "job-1.log")))
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		d.print(time.Now())
	}
	return nil
}

func (d *demo) print(now time.Time) {
	for _, r := range d.board.ready(now) {
		d.out.say("%s", d.out.line(r))
	}
}

// revive starts the bridge again, unless it ended because of an error of its own.
func (d *demo) revive() error {
	code := d.bridge.ExitCode()
	if code > 0 {
		return fmt.Errorf("the bridge has ended with exit code %d%s", code, tail(d.in("bridge.log")))
	}
	if err := d.bridge.Restart(context.Background()); err != nil {
		return err
	}
	how := "stopped"
	if code < 0 {
		how = "killed"
	}
	d.out.say("%s", d.out.paint(lines.Bold, fmt.Sprintf("         the bridge was %s; started again as process %d, it goes on from its journal", how, d.bridge.Pid())))
	return nil
}

// tail is the end of a log, to be shown below an error.
func tail(path string) string {
	const most = 20
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Sprintf("; its log cannot be read: %v", err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return fmt.Sprintf("\n--- end of %s ---\n%s", path, strings.Join(lines[max(0, len(lines)-most):], "\n"))
}
