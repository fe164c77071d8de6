// Command files turns JSON files that arrive in a folder into Parquet, partitioned by day,
// and tells how it goes. It ends when it has caught up; run again, it takes new files only.
//
//	go run ./examples/files -remote sc://localhost:15002 -in /data/in -out /data/out -checkpoint /data/checkpoints/files
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

type options struct{ remote, in, out, checkpoint string }

func main() {
	var o options
	flag.StringVar(&o.remote, "remote", "", "Spark Connect server; $SPARK_REMOTE if it is left out")
	flag.StringVar(&o.in, "in", "", "folder of the server's with JSON files")
	flag.StringVar(&o.out, "out", "", "folder of the server's for Parquet files")
	flag.StringVar(&o.checkpoint, "checkpoint", "", "folder of the server's that keeps how far it is")
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

	orders := spark.ReadStream().Format("json").
		Schema("id BIGINT, day DATE, amount DECIMAL(10, 2)").
		Option("maxFilesPerTrigger", 1).
		Load(o.in).
		Observe("orders", "count(*) AS n", "sum(amount) AS amount")

	q, err := orders.WriteStream().Format("parquet").Path(o.out).
		PartitionBy("day").
		Option("checkpointLocation", o.checkpoint).
		QueryName("orders").
		Start(ctx)
	if err != nil {
		return err
	}
	return q.Drain(ctx, connect.DrainOptions{Progress: func(p *listener.QueryProgress) {
		fmt.Fprintf(out, "batch %d: %s in %d ms\n", p.BatchID, p.ObservedMetrics["orders"], p.DurationMs["triggerExecution"])
	}})
}
