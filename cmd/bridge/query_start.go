package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/internal/console"
)

// starting is the flags of bridge query start.
type starting struct {
	q *query

	name, view, sql, mode string
	read, table, path     string
	readOptions           []string
	schema, watermark     string
	write, toTable        string
	toPath, checkpoint    string
	options, partitionBy  []string
	trigger               string
	limit                 interval
	then                  console.Start
}

func (q *query) start() *cobra.Command {
	s := starting{q: q}
	cmd := &cobra.Command{
		Use:   "start",
		Short: "Start a query",
		Long: "Starts a query that reads one stream and writes it, as it is or by SQL over it, and returns when Spark has started\n" +
			"it. Formats and options go to Spark untouched.\n\n" +
			"The query belongs to the session that the connection string names. Without a session_id it gets a session of its\n" +
			"own, which ends with the command: then --await or --drain is needed.",
		Example: "  bridge query start --name ticks --read rate --write memory --trigger '5 seconds'\n" +
			"  bridge query start --name counts --read kafka --read-option subscribe=orders \\\n" +
			"    --read-option kafka.bootstrap.servers=localhost:9092 --watermark 'timestamp 10 minutes' \\\n" +
			"    --sql 'SELECT window(timestamp, \"5 minutes\") AS w, count(*) AS n FROM input GROUP BY 1' \\\n" +
			"    --write parquet --to-path /data/counts --checkpoint /data/checkpoints/counts --trigger available-now --await",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	s.flags(cmd)
	return cmd
}

func (s *starting) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&s.name, "name", "", "`name` of the query, one of its own in the session")
	flags.StringVar(&s.read, "read", "", "read a `format`: rate, kafka, json, parquet, delta, …")
	flags.StringVar(&s.table, "table", "", "or read what is added to a table of this `name`")
	flags.StringVar(&s.path, "path", "", "`folder` to read files from")
	flags.StringVar(&s.schema, "schema", "", "`columns` of files, such as 'id INT, name STRING'")
	flags.StringArrayVar(&s.readOptions, "read-option", nil, "option of the source, as `key=value`; repeatable")
	flags.StringVar(&s.watermark, "watermark", "", "`column and delay` of late rows, such as 'ts 10 minutes'")
	flags.StringVar(&s.sql, "sql", "", "`SELECT` what is written; left out, all that is read")
	flags.StringVar(&s.view, "view", "input", "`name` of the stream in --sql")
	flags.StringVar(&s.write, "write", "", "write a `format`: parquet, kafka, delta, memory, console, noop, …")
	flags.StringVar(&s.toTable, "to-table", "", "or write a table of this `name`, which is made if it is missing")
	flags.StringVar(&s.toPath, "to-path", "", "`folder` to write files to")
	flags.StringVar(&s.checkpoint, "checkpoint", "", "`folder` where Spark notes how far the query is, the same at each start")
	flags.StringArrayVar(&s.options, "option", nil, "option of the sink, as `key=value`; repeatable")
	flags.StringSliceVar(&s.partitionBy, "partition-by", nil, "`columns` of whose values each gets a folder")
	flags.StringVar(&s.mode, "mode", "append", "write rows that will not change any more (append), those that have changed (update), or all (complete)")
	flags.StringVar(&s.trigger, "trigger", "", "run a batch every `10s`, or once, available-now, 'continuous 1s'; left out, as soon as there is data")
	flags.BoolVar(&s.then.CreateSession, "create-session", false, "make the session that is named, if it is missing")
	flags.BoolVar(&s.then.Await, "await", false, "wait until the query has ended, and exit 1 if it fails")
	flags.BoolVar(&s.then.Drain, "drain", false, "wait until the query has caught up, and stop it")
	flags.Var(&s.limit, "limit", "with --await or --drain: how long to wait, as their own commands do (default for ever)")
	cmd.MarkFlagsMutuallyExclusive("await", "drain")
	cmd.MarkFlagsMutuallyExclusive("read", "table")
	cmd.MarkFlagsMutuallyExclusive("to-path", "to-table")
}

func (s *starting) run(cmd *cobra.Command) error {
	query, err := s.query()
	if err != nil {
		return err
	}
	s.then.Limit = time.Duration(s.limit)
	return s.q.run(cmd, func(ctx context.Context, c *console.Console) error {
		return c.Start(ctx, &s.q.server, query, s.then)
	})
}

// query is what the flags say of the query.
func (s *starting) query() (*configs.Query, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	view := configs.View{Format: s.read, Table: s.table, Path: configs.SparkText(s.path), Schema: s.schema}
	output := configs.Output{Format: s.write, Table: s.toTable, Path: configs.SparkText(s.toPath), Checkpoint: configs.SparkText(s.checkpoint), PartitionBy: s.partitionBy}
	query := configs.Query{Name: s.name, SQL: configs.SparkText(s.sql), OutputMode: connect.OutputMode(s.mode)}
	var problems [4]error
	view.Options, problems[0] = settings("--read-option", s.readOptions)
	output.Options, problems[1] = settings("--option", s.options)
	if s.watermark != "" {
		view.Watermark, problems[2] = parseWatermark(s.watermark)
	}
	if s.trigger != "" {
		if err := query.Trigger.UnmarshalText([]byte(s.trigger)); err != nil {
			problems[3] = fmt.Errorf("--trigger %q %w", s.trigger, err)
		}
	}
	query.Views, query.Output = map[string]configs.View{s.view: view}, output
	return &query, errors.Join(problems[:]...)
}

// check refuses what is missing, and what does not go together.
func (s *starting) check() error {
	modes := []connect.OutputMode{connect.Append, connect.Update, connect.Complete}
	switch {
	case s.read == "" && s.table == "":
		return errors.New("nothing to read is named: add --read with a format such as rate, or --table")
	case s.write == "" && s.toTable == "":
		return errors.New("nothing to write is named: add --write with a format such as memory, or --to-table")
	case !slices.Contains(modes, connect.OutputMode(s.mode)):
		return fmt.Errorf("--mode %q is not known: use append, update or complete", s.mode)
	case s.limit != 0 && !s.then.Await && !s.then.Drain:
		return errors.New("--limit is for waiting: add --await or --drain, or drop it")
	}
	return nil
}

// settings reads key=value pairs.
func settings(flag string, pairs []string) (map[string]configs.Setting, error) {
	read := make(map[string]configs.Setting, len(pairs))
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%s %q is no option: write key=value", flag, pair)
		}
		read[key] = configs.Setting(value)
	}
	return read, nil
}

func parseWatermark(text string) (w configs.Watermark, err error) {
	column, delay, ok := strings.Cut(strings.TrimSpace(text), " ")
	if !ok {
		return w, fmt.Errorf("--watermark %q has no delay: write a column and a duration, such as 'ts 10 minutes'", text)
	}
	w.Column, delay = column, strings.TrimSpace(delay)
	if err := w.Delay.UnmarshalText([]byte(delay)); err != nil {
		return w, fmt.Errorf("--watermark: the delay %q %w", delay, err)
	}
	return w, nil
}
