//go:build integration

package connect

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// open makes a session of our own on a real server.
func (r *real) open(t *testing.T) *Session {
	t.Helper()
	remote, err := ParseRemote(r.Remote() + "/;user_id=tests")
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.client.Open(t.Context(), remote)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close session: %v", err)
		}
	})
	return s
}

func TestStreamsOnSpark(t *testing.T) {
	for _, version := range []string{"4.2", "4.0", "3.5"} {
		t.Run(version, func(t *testing.T) {
			r := startReal(t, version, "")
			t.Run("rate to memory", func(t *testing.T) { rateToMemory(t, r.open(t)) })
			t.Run("sql", func(t *testing.T) { sqlWithArgs(t, r.open(t)) })
			t.Run("settings", func(t *testing.T) { settings(t, r.open(t)) })
			t.Run("refused", func(t *testing.T) { refusedStarts(t, r.open(t), version) })
			t.Run("refused elsewhere", func(t *testing.T) { refusedElsewhere(t, r.open(t), version) })
			t.Run("windows", func(t *testing.T) { windows(t, r.open(t)) })
			t.Run("duplicates", func(t *testing.T) { duplicates(t, r.open(t)) })
			t.Run("views and metrics", func(t *testing.T) { viewsAndMetrics(t, r.open(t)) })
			t.Run("socket", func(t *testing.T) { fromASocket(t, r.open(t)) })
			t.Run("sinks", func(t *testing.T) { sinks(t, r.open(t)) })
			t.Run("triggers", func(t *testing.T) { triggers(t, r.open(t)) })
			t.Run("interrupted", func(t *testing.T) { interrupted(t, r, r.open(t)) })
			t.Run("nobody", func(t *testing.T) { nobody(t, r) })
		})
	}
}

func collect(t *testing.T, d *DataFrame, err error) []string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	rows, err := d.Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, row := range rows {
		out = append(out, string(row))
	}
	return out
}

func rateToMemory(t *testing.T, s *Session) {
	df := s.ReadStream().Format("rate").Option("rowsPerSecond", 50).Load().Where("value % 2 = 0").Select("value * 10 AS v")
	if streaming, err := df.IsStreaming(t.Context()); err != nil || !streaming {
		t.Errorf("IsStreaming = %v, %v", streaming, err)
	}
	q, err := df.WriteStream().Format("memory").QueryName("events").Trigger(ProcessingTime(100 * time.Millisecond)).Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if q.ID() == "" || q.RunID() == "" || q.Name() != "events" {
		t.Errorf("started %q %q %q", q.ID(), q.RunID(), q.Name())
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		rows, err := s.Table("events").Collect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) >= 3 {
			var row struct{ V int64 }
			if err := json.Unmarshal(rows[1], &row); err != nil || row.V%20 != 0 {
				t.Errorf("row %s: %v", rows[1], err)
			}
			break
		}
	}
	var text strings.Builder
	if err := s.Table("events").Limit(2).Show(t.Context(), &text, 5); err != nil || !strings.Contains(text.String(), "|  v|") {
		t.Errorf("Show: %v\n%s", err, text.String())
	}
}

func sqlWithArgs(t *testing.T, s *Session) {
	if _, err := s.SQL(t.Context(), "CREATE OR REPLACE TEMP VIEW numbers AS SELECT id, 'n' || id AS name FROM range(5)"); err != nil {
		t.Fatal(err)
	}
	df, err := s.SQL(t.Context(), "SELECT * FROM numbers WHERE id > :least AND name <> :name ORDER BY id", Arg{"least", 1}, Arg{"name", "n3"})
	if got := collect(t, df, err); !slices.Equal(got, []string{`{"id":2,"name":"n2"}`, `{"id":4,"name":"n4"}`}) {
		t.Errorf("rows %q", got)
	}
	schema, err := df.Schema(t.Context())
	if err != nil || !strings.Contains(schema, "id: long") {
		t.Errorf("Schema: %v\n%s", err, schema)
	}
	plan, err := df.Explain(t.Context(), true)
	if err != nil || !strings.Contains(plan, "Physical Plan") {
		t.Errorf("Explain: %v\n%s", err, plan)
	}
	var refused *Error
	if _, err := s.SQL(t.Context(), "SELEC 1"); !errors.As(err, &refused) || refused.Class != "PARSE_SYNTAX_ERROR" {
		t.Errorf("a syntax error: %v", err)
	}
}

func settings(t *testing.T, s *Session) {
	c := s.Conf()
	if err := c.Set(t.Context(), "spark.sql.shuffle.partitions", "7"); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Get(t.Context(), "spark.sql.shuffle.partitions"); err != nil || got != "7" {
		t.Errorf("Get = %q, %v", got, err)
	}
	if err := c.Unset(t.Context(), "spark.sql.shuffle.partitions"); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := c.Lookup(t.Context(), "spark.sql.shuffle.partitions"); err != nil || !ok || got == "7" {
		t.Errorf("Lookup after Unset = %q, %v, %v", got, ok, err)
	}
	if _, ok, err := c.Lookup(t.Context(), "spark.nobody.knows"); err != nil || ok {
		t.Errorf("Lookup of what nobody knows: %v, %v", ok, err)
	}
	var refused *Error
	if _, err := c.Get(t.Context(), "spark.nobody.knows"); !errors.As(err, &refused) {
		t.Errorf("Get of what nobody knows: %v", err)
	}
	if err := c.Set(t.Context(), "spark.sql.warehouse.dir", "x"); !errors.As(err, &refused) {
		t.Errorf("Set of a static setting: %v", err)
	}
	if all, err := c.All(t.Context()); err != nil || all["spark.app.name"] == "" {
		t.Errorf("All: %d settings, %v", len(all), err)
	}
}

func refusedStarts(t *testing.T, s *Session, version string) {
	rate := s.ReadStream().Format("rate").Load()
	for name, try := range map[string]struct {
		w     *StreamWriter
		class string // that of Spark 4
		says  string
	}{
		"unknown source":    {s.ReadStream().Format("nosuch").Load().WriteStream().Format("noop"), "DATA_SOURCE_NOT_FOUND", "nosuch"},
		"wrong output mode": {rate.WriteStream().Format("memory").QueryName("x").OutputMode(Complete), "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION", "omplete"},
		"unknown column":    {rate.Select("nosuch").WriteStream().Format("noop"), "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nosuch"},
		"no checkpoint":     {rate.WriteStream().Format("parquet").Path(t.TempDir()), "_LEGACY_ERROR_TEMP_1298", "checkpointLocation must be specified"},
	} {
		_, err := try.w.Start(t.Context())
		var refused *Error
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !strings.Contains(refused.Message, try.says) {
			t.Errorf("%s: message %q does not say %q", name, refused.Message, try.says)
		}
		if version == "3.5" {
			continue // it gives a class for a part only, and no trace
		}
		if refused.Class != try.class {
			t.Errorf("%s: class %q, want %q", name, refused.Class, try.class)
		}
		if !strings.Contains(refused.StackTrace, "\n\tat org.apache.spark.") {
			t.Errorf("%s: stack trace %q", name, refused.StackTrace)
		}
	}
}
