// Command kafka counts the words of one Kafka topic into another, and goes on until it is
// interrupted.
//
//	go run ./examples/kafka -remote sc://localhost:15002 -brokers localhost:9092 -checkpoint /data/checkpoints/words
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"sparkbridge/connect"
	"sparkbridge/listener"
)

type options struct{ remote, brokers, in, out, checkpoint string }

func main() {
	var o options
	flag.StringVar(&o.remote, "remote", "", "Spark Connect server; $SPARK_REMOTE if it is left out")
	flag.StringVar(&o.brokers, "brokers", "localhost:9092", "Kafka brokers, as the server reaches them")
	flag.StringVar(&o.in, "in", "sentences", "topic to read")
	flag.StringVar(&o.out, "out", "words", "topic to write")
	flag.StringVar(&o.checkpoint, "checkpoint", "", "folder of the server's that keeps how far it is")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, o, os.Stdout)
	stop()
	if err != nil && !errors.Is(err, context.Canceled) {
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

	words := spark.ReadStream().Format("kafka").
		Option("kafka.bootstrap.servers", o.brokers).
		Option("subscribe", o.in).
		Option("startingOffsets", "earliest").
		Load().
		Select("explode(split(CAST(value AS STRING), ' ')) AS word").
		GroupBy("word").Agg("count(*) AS n").
		Select("word AS key", "CAST(n AS STRING) AS value")

	write := words.WriteStream().Format("kafka").
		Option("kafka.bootstrap.servers", o.brokers).
		Option("topic", o.out).
		Option("checkpointLocation", o.checkpoint).
		OutputMode(connect.Update).
		Trigger(connect.ProcessingTime(time.Second))

	// The first listener opens the session's listener bus; Close frees it.
	if err := spark.Streams().AddListener(ctx, &listener.Listener{OnQueryProgress: func(e listener.Event) {
		if p, err := listener.DecodeProgress(e.Payload); err == nil && p.NumInputRows != nil {
			fmt.Fprintf(out, "%d sentences\n", *p.NumInputRows)
		}
	}}); err != nil {
		return err
	}
	return connect.RunQuery(ctx, write, func(ctx context.Context, q *connect.StreamingQuery) error {
		return q.AwaitTermination(ctx)
	})
}
