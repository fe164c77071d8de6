// Command change-feed copies what has changed in a Delta table since a version, and ends when
// it has caught up. Run again, it goes on where it stopped.
//
//	go run ./examples/change-feed -remote sc://localhost:15002 -from orders -to changes -checkpoint /data/checkpoints/changes
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"sparkbridge/connect"
	"sparkbridge/listener"
)

type options struct {
	remote, from, to, checkpoint string
	since                        int
}

func main() {
	var o options
	flag.StringVar(&o.remote, "remote", "", "Spark Connect server; $SPARK_REMOTE if it is left out")
	flag.StringVar(&o.from, "from", "", "table with a change feed")
	flag.StringVar(&o.to, "to", "", "table that gets the changes")
	flag.StringVar(&o.checkpoint, "checkpoint", "", "folder of the server's that keeps how far the copy is")
	flag.IntVar(&o.since, "since", 0, "first version to copy, at the first run")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, out io.Writer) error {
	spark, err := connect.Open(ctx, o.remote)
	if err != nil {
		return err
	}
	defer spark.Close() //nolint:errcheck // the server ends the session later by itself

	changes := spark.ReadStream().Format("delta").
		Option("readChangeFeed", true).
		Option("startingVersion", o.since).
		Table(o.from).
		Where("_change_type <> 'update_preimage'")

	q, err := changes.WriteStream().Format("delta").
		Option("checkpointLocation", o.checkpoint).
		Trigger(connect.AvailableNow()).
		ToTable(ctx, o.to)
	if err != nil {
		return err
	}
	rows := int64(0)
	if err := q.Drain(ctx, connect.DrainOptions{Progress: func(p *listener.QueryProgress) {
		if p.NumInputRows != nil {
			rows += *p.NumInputRows
		}
	}}); err != nil {
		return err
	}
	fmt.Fprintf(out, "caught up: %d changes\n", rows)
	return nil
}
