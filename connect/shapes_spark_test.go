//go:build integration

package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sparkbridge/connect/sparkpb"
	"sparkbridge/listener"
)

// words writes files that are read one a batch. What comes last is so late that all windows
// before it are over.
func words(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for i, rows := range []string{
		`{"ts":"2026-01-01T00:00:00Z","word":"a","n":1} {"ts":"2026-01-01T00:01:00Z","word":"b","n":2} {"ts":"2026-01-01T00:02:00Z","word":"a","n":3}`,
		`{"ts":"2026-01-01T00:06:00Z","word":"a","n":5} {"ts":"2026-01-01T00:20:00Z","word":"a","n":7}`,
		`{"ts":"2026-01-01T09:00:00Z","word":"z","n":0}`,
		`{"ts":"2026-01-01T09:00:01Z","word":"z","n":0}`,
	} {
		path := filepath.Join(dir, fmt.Sprintf("%d.json", i))
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(rows, "} {", "}\n{")), 0o644); err != nil {
			t.Fatal(err)
		}
		age := time.Now().Add(time.Duration(i-10) * time.Minute) // files are read by age
		if err := os.Chtimes(path, age, age); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func wordsOf(t *testing.T, s *Session) *DataFrame {
	t.Helper()
	return s.ReadStream().Format("json").Schema("ts TIMESTAMP, word STRING, n INT").Option("maxFilesPerTrigger", 1).Load(words(t))
}

// finished runs a query to its end.
func finished(t *testing.T, q *StreamingQuery, err error) *StreamingQuery {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if err := q.AwaitTermination(ctx); err != nil {
		t.Fatal(err)
	}
	return q
}

// inMemory works off a stream and returns what became of it, sorted.
func inMemory(t *testing.T, s *Session, d *DataFrame, name string, mode OutputMode) []string {
	t.Helper()
	q, err := d.WriteStream().Format("memory").QueryName(name).OutputMode(mode).Trigger(AvailableNow()).Start(t.Context())
	finished(t, q, err)
	rows := collect(t, s.Table(name), nil)
	slices.Sort(rows)
	return rows
}

func is(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: rows\n%s\nwant\n%s", what, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func windows(t *testing.T, s *Session) {
	d := wordsOf(t, s).WithWatermark("ts", "10 minutes")
	is(t, "windows", inMemory(t, s, d.GroupBy("window(ts, '5 minutes')", "word").Agg("sum(n) AS n").
		Select("date_format(window.start, 'HH:mm') AS at", "word", "n"), "tumbling", Append),
		`{"at":"00:00","word":"a","n":4}`, `{"at":"00:00","word":"b","n":2}`, `{"at":"00:05","word":"a","n":5}`, `{"at":"00:20","word":"a","n":7}`)
	is(t, "session windows", inMemory(t, s, d.GroupBy("session_window(ts, '5 minutes')", "word").Agg("sum(n) AS n").
		Select("date_format(session_window.end, 'HH:mm') AS until", "word", "n"), "sessions", Append),
		`{"until":"00:06","word":"b","n":2}`, `{"until":"00:11","word":"a","n":9}`, `{"until":"00:25","word":"a","n":7}`)
	is(t, "counts", inMemory(t, s, wordsOf(t, s).GroupBy("word").Agg("count(*) AS n"), "counts", Complete),
		`{"word":"a","n":4}`, `{"word":"b","n":1}`, `{"word":"z","n":2}`)
}

func duplicates(t *testing.T, s *Session) {
	d := wordsOf(t, s).WithWatermark("ts", "1 hour")
	is(t, "by a column", inMemory(t, s, d.DropDuplicates("word").Select("word"), "once", Append), `{"word":"a"}`, `{"word":"b"}`, `{"word":"z"}`)
	is(t, "of all columns", inMemory(t, s, wordsOf(t, s).Select("word", "n % 2 AS odd").DropDuplicates(), "rows", Append),
		`{"word":"a","odd":1}`, `{"word":"b","odd":0}`, `{"word":"z","odd":0}`)
	is(t, "within the watermark", inMemory(t, s, d.DropDuplicatesWithinWatermark("word").Select("word"), "within", Append),
		`{"word":"a"}`, `{"word":"b"}`, `{"word":"z"}`)
}

func viewsAndMetrics(t *testing.T, s *Session) {
	if err := wordsOf(t, s).CreateTempView(t.Context(), "said"); err != nil {
		t.Fatal(err)
	}
	var refused *Error
	if err := s.Table("said").CreateTempView(t.Context(), "said"); !errors.As(err, &refused) || !strings.Contains(refused.Message, "said") {
		t.Errorf("a view under a name that is taken: %v", err)
	}
	if err := wordsOf(t, s).CreateOrReplaceTempView(t.Context(), "said"); err != nil {
		t.Fatal(err)
	}
	d, err := s.SQL(t.Context(), "SELECT upper(word) AS word, n FROM said WHERE n > :least", Arg{"least", 2})
	if err != nil {
		t.Fatal(err)
	}
	q, err := d.Observe("seen", "count(*) AS rows", "max(n) AS max").
		WriteStream().Format("memory").QueryName("loud").Trigger(AvailableNow()).Start(t.Context())
	finished(t, q, err)
	rows := collect(t, s.Table("loud").Limit(100), nil)
	slices.Sort(rows)
	is(t, "sql over a view of a stream", rows, `{"word":"A","n":3}`, `{"word":"A","n":5}`, `{"word":"A","n":7}`)

	progress, err := q.RecentProgress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var seen struct{ Rows, Max int }
	if i := slices.IndexFunc(progress, func(p *listener.Progress) bool { return p.BatchID == 1 }); i < 0 {
		t.Errorf("no progress of batch 1 in %d", len(progress))
	} else if err := json.Unmarshal(progress[i].ObservedMetrics["seen"], &seen); err != nil || seen.Rows != 2 || seen.Max != 7 {
		t.Errorf("metrics %s: %v", progress[i].ObservedMetrics["seen"], err)
	}
}

func sinks(t *testing.T, s *Session) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	q, err := wordsOf(t, s).WriteStream().Format("parquet").Path(out).PartitionBy("word").Trigger(AvailableNow()).
		Option("checkpointLocation", filepath.Join(dir, "files")).Start(t.Context())
	finished(t, q, err)
	if _, err := os.Stat(filepath.Join(out, "word=b")); err != nil {
		t.Errorf("no folder of its own: %v", err)
	}
	d, err := s.SQL(t.Context(), "SELECT word, sum(n) AS n FROM parquet.`"+out+"` GROUP BY word ORDER BY word")
	is(t, "files", collect(t, d, err), `{"word":"a","n":16}`, `{"word":"b","n":2}`, `{"word":"z","n":0}`)

	table := "words_" + strings.ReplaceAll(s.ID(), "-", "")
	q, err = wordsOf(t, s).WriteStream().Option("checkpointLocation", filepath.Join(dir, "table")).Trigger(AvailableNow()).ToTable(t.Context(), table)
	finished(t, q, err)
	is(t, "table", collect(t, s.Table(table).GroupBy().Agg("sum(n) AS n"), nil), `{"n":18}`)
	d, err = s.SQL(t.Context(), "SHOW TABLES LIKE '"+table+"'")
	if rows := collect(t, d, err); len(rows) != 1 || !strings.Contains(rows[0], table) {
		t.Errorf("the rows of a statement: %q", rows)
	}
}

func triggers(t *testing.T, s *Session) {
	q, err := wordsOf(t, s).WriteStream().Format("memory").QueryName("one").Trigger(Once()).Start(t.Context())
	finished(t, q, err)
	if rows := collect(t, s.Table("one"), nil); len(rows) == 0 {
		t.Error("once has read nothing")
	}
	for name, trigger := range map[string]Trigger{"default": {}, "often": ProcessingTime(50 * time.Millisecond), "continuous": Continuous(500 * time.Millisecond)} {
		// One partition, since a continuous query keeps a core for each.
		ticks := s.ReadStream().Format("rate").Option("numPartitions", 1).Option("rowsPerSecond", 10).Load()
		q, err := ticks.Select("value").WriteStream().Format("memory").QueryName(name).Trigger(trigger).Start(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		for rows := 0; rows < 3; {
			got, err := s.Table(name).Collect(ctx)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				break
			}
			rows = len(got)
		}
		cancel()
		if err := q.Stop(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func refusedElsewhere(t *testing.T, s *Session, version string) {
	if _, err := rateOf(s).WriteStream().Format("noop").QueryName("taken").Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var refused *Error
	if _, err := rateOf(s).WriteStream().Format("noop").QueryName("taken").Start(t.Context()); !errors.As(err, &refused) || !strings.Contains(refused.Message, "already active") {
		t.Errorf("a name that is taken: %v", err)
	}
	if _, err := rateOf(s).Collect(t.Context()); !errors.Is(err, errStream) {
		t.Errorf("collect a stream: %v", err)
	}
	for what, err := range map[string]error{
		"analysis": func() error { _, err := s.Table("nosuch").Schema(t.Context()); return err }(),
		"rows":     func() error { _, err := s.Table("nosuch").Collect(t.Context()); return err }(),
		"view":     s.Table("nosuch").CreateTempView(t.Context(), "v"),
	} {
		if !errors.As(err, &refused) || !strings.Contains(refused.Message, "nosuch") {
			t.Errorf("%s of a table that is not there: %v", what, err)
		} else if refused.Class != "TABLE_OR_VIEW_NOT_FOUND" {
			t.Errorf("%s of a table that is not there: class %q", what, refused.Class)
		}
	}
	// Longer than what Spark tells at first.
	name := strings.Repeat("x", 3000)
	if _, err := rateOf(s).Select(name).WriteStream().Format("noop").Start(t.Context()); !errors.As(err, &refused) || version != "3.5" && !strings.Contains(refused.Message, name) {
		t.Errorf("a long message: %.100v … of %d bytes", err, len(refused.Message))
	}
}

// A wait that nobody has the patience for any more holds no thread of the driver.
func interrupted(t *testing.T, r *real, s *Session) {
	q, err := rateOf(s).WriteStream().Format("noop").Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := q.perform(ctx, "await", &sparkpb.StreamingQueryCommand{
			Command: &sparkpb.StreamingQueryCommand_AwaitTermination{AwaitTermination: &sparkpb.StreamingQueryCommand_AwaitTerminationCommand{}},
		})
		done <- err
	}()
	r.awaitThreads(t, 1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("await: %v", err)
	}
	r.awaitThreads(t, 0)
}

// awaitThreads waits until so many threads of the driver wait for the end of a query.
func (r *real) awaitThreads(t *testing.T, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		n := strings.Count(r.threads(ctx, t), "StreamExecution.awaitTermination(")
		if n == want {
			return
		}
		if err := sleep(ctx, 500*time.Millisecond); err != nil {
			t.Fatalf("%d threads wait, want %d", n, want)
		}
	}
}

// threads is what the driver's threads do: Java tells it in its output when it is asked.
func (r *real) threads(ctx context.Context, t *testing.T) string {
	t.Helper()
	log := filepath.Join(r.Dir(), "spark.log")
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(r.Pid(), syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	for {
		after, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if told := string(after[len(before):]); strings.Contains(told, "JNI global ref") {
			return told
		}
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			t.Fatal("Java does not tell what its threads do")
		}
	}
}

// nobody needs a name: Open works without a user.
func nobody(t *testing.T, r *real) {
	remote, err := ParseRemote(r.Remote())
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.client.Open(t.Context(), remote)
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.SQL(t.Context(), "SELECT 1 AS one")
	is(t, "sql", collect(t, d, err), `{"one":1}`)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
