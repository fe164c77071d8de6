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
	"time"

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

	write := counts.WriteStream().Format("memory").QueryName("counts").OutputMode(connect.Append)
	return connect.RunQuery(ctx, write, func(ctx context.Context, _ *connect.StreamingQuery) error {
		for e, err := range spark.Streams().Events(ctx) {
			switch {
			case err != nil:
				return err
			case e.Kind == listener.KindTerminated:
				return nil // RunQuery tells why
			case e.Kind == listener.KindProgress:
				if done, err := look(ctx, spark, e, windows, out); done || err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// look tells of a batch, and prints the windows when there are enough of them.
func look(ctx context.Context, spark *connect.Session, e listener.Event, windows int, out io.Writer) (done bool, err error) {
	p, err := listener.DecodeProgress(e.Payload)
	if err != nil {
		return false, err
	}
	fmt.Fprintf(out, "batch %d, watermark %s\n", p.BatchID, p.EventTime.Watermark.Format(time.TimeOnly))
	rows, err := spark.Table("counts").Collect(ctx)
	if err != nil || len(rows) < windows {
		return false, err
	}
	return true, show(rows, out)
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
