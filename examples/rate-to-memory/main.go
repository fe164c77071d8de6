// Command rate-to-memory streams rows into a table in memory, looks at them, and stops.
//
//	go run ./examples/rate-to-memory -remote sc://localhost:15002
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"sparkbridge/connect"
)

func main() {
	remote := flag.String("remote", "", "Spark Connect server; $SPARK_REMOTE if it is left out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *remote, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, remote string, out io.Writer) error {
	spark, err := connect.Open(ctx, remote)
	if err != nil {
		return err
	}
	defer spark.Close() //nolint:errcheck // the server ends the session later by itself

	even := spark.ReadStream().Format("rate").Option("rowsPerSecond", 10).Load().
		Where("value % 2 = 0").
		Select("value", "timestamp")

	// RunQuery stops the query when the function returns.
	return connect.RunQuery(ctx, even.WriteStream().Format("memory").QueryName("even_numbers"),
		func(ctx context.Context, q *connect.StreamingQuery) error {
			for {
				p, err := q.LastProgress(ctx)
				if err != nil {
					return err
				}
				if p != nil && p.BatchID >= 2 {
					break
				}
				if active, err := q.IsActive(ctx); err != nil || !active {
					return err // RunQuery tells why a query has failed
				}
				select {
				case <-time.After(500 * time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			rows, err := spark.SQL(ctx, "SELECT value FROM even_numbers ORDER BY value")
			if err != nil {
				return err
			}
			return rows.Show(ctx, out, 5)
		})
}
