package connect_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"sparkbridge/connect"
	"sparkbridge/listener"
)

var (
	ctx   = context.Background()
	spark *connect.Session
)

// A session of our own, which Close ends.
func ExampleOpen() {
	spark, err := connect.Open(ctx, "sc://localhost:15002")
	if err != nil {
		log.Fatal(err)
	}
	defer spark.Close() //nolint:errcheck // at the end of the program
	fmt.Println(spark.SparkVersion(ctx))
}

// The session of a job, which stays as it is.
func ExampleAttach() {
	spark, err := connect.Attach(ctx, "sc://localhost:15002/;user_id=etl;session_id=5b0d2c1e-8f0a-4c53-9a58-7b1f0a4f3e11")
	if errors.Is(err, connect.ErrSessionNotFound) {
		log.Fatal("the job has not begun yet")
	}
	if err != nil {
		log.Fatal(err)
	}
	defer spark.Close() //nolint:errcheck // at the end of the program
}

// What a connection string says.
func ExampleParseRemote() {
	r, err := connect.ParseRemote("sc://spark.example.com:443/;token=s3cret;user_id=etl")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r.Host, r.Port, r.UseSSL, r.UserID)
	fmt.Println(r)
	// Output:
	// spark.example.com 443 true etl
	// sc://spark.example.com:443/;use_ssl=true;user_id=etl;token=***
}

// Durations as Go and as Spark people write them.
func ExampleParseInterval() {
	for _, text := range []string{"90s", "1 minute 30 seconds", "interval 1 hour"} {
		fmt.Println(connect.ParseInterval(text))
	}
	// Output:
	// 1m30s <nil>
	// 1m30s <nil>
	// 1h0m0s <nil>
}

// Settings of the session, before its queries are started.
func ExampleSession_Conf() {
	if err := spark.Conf().Set(ctx, "spark.sql.shuffle.partitions", "8"); err != nil {
		log.Fatal(err)
	}
}

// Files as they arrive, into another format.
func ExampleSession_ReadStream() {
	orders := spark.ReadStream().Format("json").
		Schema("id BIGINT, day DATE, amount DECIMAL(10, 2)").
		Load("/data/orders")

	q, err := orders.WriteStream().Format("parquet").Path("/data/archive").
		PartitionBy("day").
		Option("checkpointLocation", "/data/checkpoints/archive").
		QueryName("archive").
		Trigger(connect.ProcessingTime(10 * time.Second)).
		Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(q.ID(), q.RunID())
}

// Counts in windows of time, of rows that come up to ten minutes late.
func ExampleDataFrame_WithWatermark() {
	clicks := spark.ReadStream().Table("clicks").
		WithWatermark("at", "10 minutes").
		GroupBy("window(at, '5 minutes')", "page").
		Agg("count(*) AS n")
	_, err := clicks.WriteStream().OutputMode(connect.Append).
		Option("checkpointLocation", "/data/checkpoints/clicks").
		ToTable(ctx, "clicks_by_window")
	if err != nil {
		log.Fatal(err)
	}
}

// What users do in one visit.
func ExampleGroupedData_Agg() {
	visits := spark.ReadStream().Table("clicks").
		WithWatermark("at", "10 minutes").
		GroupBy("session_window(at, '30 minutes')", "user").
		Agg("count(*) AS clicks", "max(at) - min(at) AS stay")
	fmt.Println(visits.Schema(ctx))
}

// What has no method is written in SQL, over a view of the stream.
func ExampleSession_SQL() {
	clicks := spark.ReadStream().Format("kafka").
		Option("kafka.bootstrap.servers", "kafka:9092").
		Option("subscribe", "clicks").
		Load()
	if err := clicks.CreateOrReplaceTempView(ctx, "clicks"); err != nil {
		log.Fatal(err)
	}
	bots, err := spark.SQL(ctx, "SELECT * FROM clicks WHERE CAST(value AS STRING) LIKE :agent", connect.Arg{Name: "agent", Value: "%bot%"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := bots.WriteStream().Format("console").Start(ctx); err != nil {
		log.Fatal(err)
	}
}

// From one topic of Kafka to another.
func ExampleStreamWriter_Start() {
	words := spark.ReadStream().Format("kafka").
		Option("kafka.bootstrap.servers", "kafka:9092").
		Option("subscribe", "sentences").
		Load().
		Select("explode(split(CAST(value AS STRING), ' ')) AS value")
	q, err := words.WriteStream().Format("kafka").
		Option("kafka.bootstrap.servers", "kafka:9092").
		Option("topic", "words").
		Option("checkpointLocation", "/data/checkpoints/words").
		Start(ctx)
	var refused *connect.Error
	if errors.As(err, &refused) {
		log.Fatalf("%s: %s", refused.Class, refused.Message) // such as a column that is not there
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(q.Status(ctx))
}

// A query that runs as long as a function.
func ExampleRunQuery() {
	paid := spark.ReadStream().Table("orders").Where("state = 'paid'").Select("id", "amount")
	err := connect.RunQuery(ctx, paid.WriteStream().Format("memory").QueryName("paid"), func(ctx context.Context, q *connect.StreamingQuery) error {
		if err := q.ProcessAllAvailable(ctx); err != nil {
			return err
		}
		rows, err := spark.Table("paid").Collect(ctx)
		for _, row := range rows {
			fmt.Printf("%s\n", row) // {"id":7,"amount":12.50}
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}

// A measure of each batch, which stands in its progress.
func ExampleDataFrame_Observe() {
	orders := spark.ReadStream().Table("orders").
		Observe("orders", "count(*) AS n", "sum(amount) AS amount")
	err := connect.RunQuery(ctx, orders.WriteStream().Format("noop"), func(ctx context.Context, q *connect.StreamingQuery) error {
		if err := q.ProcessAllAvailable(ctx); err != nil {
			return err
		}
		p, err := q.LastProgress(ctx)
		if err == nil && p != nil {
			fmt.Printf("%s\n", p.ObservedMetrics["orders"])
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}

// The changes of a Delta table, up to now.
func ExampleAvailableNow() {
	changes := spark.ReadStream().Format("delta").
		Option("readChangeFeed", true).
		Option("startingVersion", 12).
		Table("orders")
	q, err := changes.WriteStream().
		Option("checkpointLocation", "/data/checkpoints/changes").
		Trigger(connect.AvailableNow()).
		ToTable(ctx, "changes")
	if err != nil {
		log.Fatal(err)
	}
	if err := q.AwaitTermination(ctx); err != nil {
		log.Fatal(err)
	}
}

// Why a query has failed.
func ExampleStreamingQuery_AwaitTermination() {
	q, err := spark.Streams().Get(ctx, "8b5e5e5e-ef5b-4ac5-935f-cc7a8261656c")
	if err != nil || q == nil {
		log.Fatal("no such query runs")
	}
	var failed *connect.QueryError
	switch err := q.AwaitTermination(ctx); {
	case errors.As(err, &failed):
		fmt.Println(failed.ErrorClass, failed.Message)
	case err != nil:
		log.Fatal(err)
	}
}

// Run until all that is there has been processed, and stop.
func ExampleStreamingQuery_Drain() {
	q, err := spark.ReadStream().Table("orders").WriteStream().Format("noop").Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	err = q.Drain(ctx, connect.DrainOptions{
		Limit:    time.Hour,
		Progress: func(p *listener.Progress) { fmt.Println(p.BatchID, p.DurationMs["addBatch"]) },
	})
	if err != nil {
		log.Fatal(err)
	}
}

// Everything that happens to the queries of a session, until one of them ends.
func ExampleStreams_Events() {
	for e, err := range spark.Streams().Events(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Name, e.Kind)
		if e.Kind == listener.KindTerminated {
			break
		}
	}
}

// All queries that run, whoever has started them.
func ExampleStreams_Active() {
	queries, err := spark.Streams().Active(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, q := range queries {
		status, err := q.Status(ctx)
		fmt.Println(q.Name(), status.Message, err)
	}
}

// Callbacks, as in Spark's own clients.
func ExampleStreams_AddListener() {
	err := spark.Streams().AddListener(ctx, &listener.Listener{
		OnQueryTerminated: func(e listener.Event) { fmt.Println(e.Name, e.Outcome) },
	})
	if err != nil {
		log.Fatal(err)
	}
}

// Rows of a bounded frame.
func ExampleDataFrame_Show() {
	if err := spark.Table("clicks_by_window").Limit(10).Show(ctx, os.Stdout, 10); err != nil {
		log.Fatal(err)
	}
}
