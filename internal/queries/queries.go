// Package queries makes a streaming query of what is written about it: views, SQL over
// them, and a writer. It starts the query, or lets Spark plan it only.
package queries

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"sparkbridge/configs"
	"sparkbridge/connect"
)

// tidyTime bounds how long views are taken away for.
const tidyTime = 5 * time.Second

// Prepare makes settings in a session, and runs SQL statements in their order.
func Prepare(ctx context.Context, s *connect.Session, conf map[string]configs.Setting, setup []configs.SparkText) error {
	if err := Configure(ctx, s, conf); err != nil {
		return err
	}
	for i, statement := range setup {
		if _, err := s.SQL(ctx, string(statement)); err != nil {
			return fmt.Errorf("setup[%d]: %w", i, err)
		}
	}
	return nil
}

// Configure makes settings in a session.
func Configure(ctx context.Context, s *connect.Session, conf map[string]configs.Setting) error {
	for _, key := range slices.Sorted(maps.Keys(conf)) {
		if err := s.Conf().Set(ctx, key, string(conf[key])); err != nil {
			return fmt.Errorf("conf: %w", err)
		}
	}
	return nil
}

// Start starts a query, and returns when Spark has started it. Of the session nothing but
// the query stays. Where SQL is over views these have names of their own while
// it is started, so that they take the place of no other view or table.
func Start(ctx context.Context, s *connect.Session, q *configs.Query) (*connect.StreamingQuery, error) {
	return StartAround(ctx, s, q, func(ctx context.Context, start func(context.Context) ([]byte, error)) error {
		_, err := start(ctx)
		return err
	})
}

// Around runs the start itself, which returns Spark's started event, or nil where Spark
// told none; listener.Admission.Start is one.
type Around func(ctx context.Context, start func(context.Context) (told []byte, err error)) error

// StartAround is Start with something around the moment of the start. A query that is
// returned beside an error runs, and the error is that of around.
func StartAround(ctx context.Context, s *connect.Session, q *configs.Query, around Around) (*connect.StreamingQuery, error) {
	rows, tidy, err := frame(ctx, s, q)
	defer tidy(ctx)
	if err != nil {
		return nil, err
	}
	var started *connect.StreamingQuery
	err = around(ctx, func(ctx context.Context) (told []byte, err error) {
		if started, err = write(ctx, rows, q); err != nil {
			return nil, err
		}
		return started.Started(), nil
	})
	return started, err
}

func write(ctx context.Context, rows *connect.DataFrame, q *configs.Query) (*connect.StreamingQuery, error) {
	w := writer(rows, q)
	if q.Output.Table != "" {
		return w.ToTable(ctx, q.Output.Table)
	}
	return w.Start(ctx)
}

// errBounded is why a query cannot be started.
var errBounded = errors.New("what it reads is no stream: in sql read the views, or STREAM before a table")

// Plan lets Spark plan what a query reads and what sql makes of it, and returns the columns
// that it would write. What concerns the sink and the output mode shows only at a start.
func Plan(ctx context.Context, s *connect.Session, q *configs.Query) (columns string, err error) {
	rows, tidy, err := frame(ctx, s, q)
	defer tidy(ctx)
	if err != nil {
		return "", err
	}
	streaming, err := rows.IsStreaming(ctx)
	switch {
	case err != nil:
		return "", err
	case !streaming:
		return "", errBounded
	}
	return rows.Schema(ctx)
}

// frame is what a query writes. tidy takes away again what had to be made for it in the
// session; it is never nil.
func frame(ctx context.Context, s *connect.Session, q *configs.Query) (rows *connect.DataFrame, tidy func(context.Context), err error) {
	tidy = func(context.Context) {}
	if q.SQL == "" {
		for _, v := range q.Views {
			return read(s, v), tidy, nil
		}
		return nil, tidy, fmt.Errorf("query %s has neither views nor sql", q.Name)
	}
	prefix := "sparkbridge_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12] + "_"
	var made []string
	tidy = func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tidyTime)
		defer cancel()
		for _, view := range made {
			_, _ = s.SQL(ctx, "DROP VIEW IF EXISTS "+view) // one that stays does no harm: nobody else has its name
		}
	}
	names := slices.Sorted(maps.Keys(q.Views))
	for _, name := range names {
		view := prefix + name
		made = append(made, view)
		if err := read(s, q.Views[name]).CreateTempView(ctx, view); err != nil {
			return nil, tidy, fmt.Errorf("view %s: %w", name, err)
		}
	}
	rows, err = s.SQL(ctx, over(prefix, names, string(q.SQL)))
	if err != nil {
		return nil, tidy, err
	}
	return rows, tidy, nil
}

// read is the stream of a view.
func read(s *connect.Session, v configs.View) *connect.DataFrame {
	r := s.ReadStream().Options(texts(v.Options))
	var rows *connect.DataFrame
	switch {
	case v.Table != "":
		rows = r.Table(v.Table)
	case v.Path != "":
		rows = r.Format(v.Format).Schema(v.Schema).Load(string(v.Path))
	default:
		rows = r.Format(v.Format).Schema(v.Schema).Load()
	}
	if v.Watermark != (configs.Watermark{}) {
		rows = rows.WithWatermark(v.Watermark.Column, v.Watermark.Delay.Spark())
	}
	return rows
}

// writer says where and how the rows are written.
func writer(rows *connect.DataFrame, q *configs.Query) *connect.StreamWriter {
	o := q.Output
	w := rows.WriteStream().QueryName(q.Name).OutputMode(q.OutputMode).Trigger(q.Trigger.Spark()).
		Format(o.Format).Options(texts(o.Options)).Path(string(o.Path)).PartitionBy(o.PartitionBy...)
	if o.Checkpoint != "" {
		w = w.Option("checkpointLocation", string(o.Checkpoint))
	}
	return w
}

func texts(settings map[string]configs.Setting) map[string]string {
	options := make(map[string]string, len(settings))
	for key, value := range settings {
		options[key] = string(value)
	}
	return options
}
