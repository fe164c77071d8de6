package main

import (
	"context"
	"errors"

	"sparkbridge/internal/lines"
)

// finish ends the queries while the bridge still listens, then all processes, and then says
// whether everything arrived.
func (d *demo) finish() error {
	d.out.say("\nStopping: first the queries, so that their ends arrive too.\n")
	if err := d.endQueries(); err != nil {
		return err
	}
	d.out.say("")
	return errors.Join(
		d.out.step("stopping the bridge (SIGTERM)", d.stopBridge),
		d.out.step("stopping the job and Spark", d.stopSpark),
	)
}

func (d *demo) endQueries() error {
	if err := d.job.Send("stop_all"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	return d.watch(ctx, d.board.ended)
}

// stopBridge takes what arrives at the sinks meanwhile.
func (d *demo) stopBridge() error {
	err := d.bridge.Stop()
	for {
		select {
		case a := <-d.arrivals:
			d.board.add(a)
		default:
			return err
		}
	}
}

func (d *demo) stopSpark() error { return errors.Join(d.job.Stop(), d.spark.Stop()) }

// close stops whatever still runs, in the reverse order of the start.
func (d *demo) close() error {
	var errs []error
	if d.bridge != nil {
		errs = append(errs, d.bridge.Stop())
	}
	close(d.over)
	if d.webhook != nil {
		d.webhook.stop()
	}
	if d.broker != nil {
		d.broker.stop()
	}
	if d.job != nil {
		errs = append(errs, d.job.Stop())
	}
	if d.spark != nil {
		errs = append(errs, d.spark.Stop())
	}
	return errors.Join(errs...)
}

// conclude prints what arrived where, next to what Spark itself has logged, and what to look at
// next. With demanded it is an error if a kind of event that the demo must show has not arrived.
func (d *demo) conclude(demanded bool) error {
	logged, err := d.spark.EventLogEvents()
	if err != nil {
		return err
	}
	s := summarize(d.board, logged)
	d.out.say("")
	d.out.table(s)
	d.out.say("")
	d.out.verdict(s)
	d.out.say("\n%s\n", d.out.paint(lines.Dim, `Next: README.md (use it on a job of your own), docs/events.md (what is in an event),
      configs/bridge.example.yaml (all keys), bin/bridge --help after "make build".`))
	if demanded {
		return s.lacking()
	}
	return nil
}
