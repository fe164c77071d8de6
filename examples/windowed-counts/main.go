// Command windowed-counts counts rows in windows of time and prints each window as soon as
// it is final, by following the session's events.
//
//	go run ./examples/windowed-counts -remote sc://localhost:15002
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"sparkbridge/connect"
	"sparkbridge/listener"
)

func main() {
	remote := flag.String("remote", "", "Spark Connect server; $SPARK_REMOTE if it is left out")
	windows := flag.Int("windows", 3, "how many windows to wait for")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *remote, *windows, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, remote string, windows int, out io.Writer) error {
	spark, err := connect.Open(ctx, remote)
	if err != nil {
		return err
	}
	defer spark.Close() //nolint:errcheck // the server ends the session later by itself

	counts := spark.ReadStream().Format("rate").Option("rowsPerSecond", 20).Load().
		WithWatermark("timestamp", "1 second").
		GroupBy("window(timestamp, '2 seconds') AS w", "value % 2 = 0 AS even").
		Agg("count(*) AS n").
		Select("w.start AS start", "even", "n")

	batches := make(chan *listener.Progress, 16)
	watch := &listener.Listener{OnQueryProgress: func(e listener.Event) {
		if p, err := listener.DecodeProgress(e.Payload); err == nil {
			batches <- p
		}
	}}
	if err := spark.Streams().AddListener(ctx, watch); err != nil {
		return err
	}
	write := counts.WriteStream().Format("memory").QueryName("counts").OutputMode(connect.Append)
	return connect.RunQuery(ctx, write, func(ctx context.Context, _ *connect.StreamingQuery) error {
		defer spark.Streams().RemoveListener(watch)
		for {
			select {
			case p := <-batches:
				fmt.Fprintf(out, "batch %d, watermark %s\n", p.BatchID, p.EventTime.Watermark.Format("15:04:05"))
			case <-ctx.Done():
				return ctx.Err()
			}
			rows, err := spark.Table("counts").Collect(ctx)
			if err != nil {
				return err
			}
			if len(rows) < windows {
				continue
			}
			return show(rows, out)
		}
	})
}

func show(rows []json.RawMessage, out io.Writer) error {
	for _, row := range rows {
		var count struct {
			Start string
			Even  bool
			N     int
		}
		if err := json.Unmarshal(row, &count); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s  even %-5t  %d rows\n", count.Start, count.Even, count.N)
	}
	return nil
}
