//go:build integration

package connect

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sparkbridge/listener"
)

func TestQueriesOnSpark(t *testing.T) {
	for _, version := range []string{"4.2", "4.0", "3.5"} {
		t.Run(version, func(t *testing.T) {
			r := startReal(t, version, "")
			t.Run("life", func(t *testing.T) { lifeOfAQuery(t, r) })
			t.Run("failure", func(t *testing.T) { failingQuery(t, r.open(t)) })
			t.Run("available now", func(t *testing.T) { availableNow(t, r.open(t)) })
			t.Run("slow batch", func(t *testing.T) { slowBatch(t, r.open(t)) })
			t.Run("drain", func(t *testing.T) { drains(t, r.open(t)) })
			t.Run("run", func(t *testing.T) { runs(t, r.open(t)) })
			if version != "3.5" { // has no listener bus
				t.Run("events", func(t *testing.T) { eventsOfASession(t, r.open(t)) })
			}
		})
	}
}

// lifeOfAQuery waits longer than several streams of the server last.
func lifeOfAQuery(t *testing.T, r *real) {
	s := r.open(t)
	q, err := s.ReadStream().Format("rate").Option("rowsPerSecond", 5).Load().
		WriteStream().Format("noop").QueryName("life").Trigger(ProcessingTime(200 * time.Millisecond)).Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if active, err := q.IsActive(t.Context()); err != nil || !active {
		t.Errorf("IsActive = %v, %v", active, err)
	}

	remote, err := ParseRemote(r.Session("tests", s.ID()))
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewClient(ClientOptions{}).Attach(t.Context(), remote)
	if err != nil {
		t.Fatal(err)
	}
	found, err := other.Streams().Get(t.Context(), q.ID())
	if err != nil || found == nil || found.RunID() != q.RunID() || found.Name() != "life" {
		t.Fatalf("Get = %+v, %v", found, err)
	}
	if none, err := other.Streams().Get(t.Context(), q.RunID()); err != nil || none != nil {
		t.Errorf("Get of a query that is none = %+v, %v", none, err)
	}
	waited := make(chan error, 1)
	go func() { waited <- found.AwaitTermination(t.Context()) }()
	any := make(chan error, 1)
	go func() { any <- other.Streams().AwaitAnyTermination(t.Context()) }()

	ctx, cancel := context.WithTimeout(t.Context(), 13*time.Second)
	defer cancel()
	if err := q.AwaitTermination(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("AwaitTermination of a query that goes on: %v", err)
	}
	if plan, err := q.Explain(t.Context(), true); err != nil || !strings.Contains(plan, "Physical Plan") {
		t.Errorf("Explain: %v\n%s", err, plan)
	}
	for range 2 {
		if err := q.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-waited; err != nil {
		t.Errorf("AwaitTermination of a query that was stopped: %v", err)
	}
	if err := <-any; err != nil {
		t.Errorf("AwaitAnyTermination: %v", err)
	}
	if err := other.Streams().AwaitAnyTermination(t.Context()); err != nil {
		t.Errorf("AwaitAnyTermination once more: %v", err)
	}
	if failed, err := q.Exception(t.Context()); err != nil || failed != nil {
		t.Errorf("Exception after a clean end: %v, %v", failed, err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := s.Probe(t.Context()); err != nil {
		t.Errorf("the session after another client has left it: %v", err)
	}
}

func failingQuery(t *testing.T, s *Session) {
	q, err := s.ReadStream().Format("rate").Option("rowsPerSecond", 5).Load().
		Select("CAST(raise_error('no such luck ' || repeat('x', 5000)) AS STRING) AS v").
		WriteStream().Format("noop").QueryName("bad").Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		name string
		wait func(context.Context) error
	}{
		{"AwaitTermination", q.AwaitTermination}, // first: before there are rows, there is nothing to process
		{"AwaitAnyTermination", s.Streams().AwaitAnyTermination},
		{"ProcessAllAvailable", q.ProcessAllAvailable},
	} {
		var failed *QueryError
		if err := w.wait(t.Context()); !errors.As(err, &failed) {
			t.Errorf("%s: %v", w.name, err)
		} else if !strings.Contains(failed.Message, "no such luck xxx") || len(failed.Message) < 5000 || failed.RunID != q.RunID() || failed.ErrorClass != "STREAM_FAILED" || !strings.Contains(failed.StackTrace, "\tat ") {
			t.Errorf("%s: class %q of run %s, message of %d bytes: %.200s", w.name, failed.ErrorClass, failed.RunID, len(failed.Message), failed.Message)
		}
	}
	if err := s.Streams().ResetTerminated(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := s.Streams().AwaitAnyTermination(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("AwaitAnyTermination after ResetTerminated: %v", err)
	}
	if status, err := q.Status(t.Context()); err != nil || status.IsActive || !strings.HasPrefix(status.Message, "Terminated with exception") {
		t.Errorf("Status = %+v, %v", status, err)
	}
	if err := q.Stop(t.Context()); err != nil {
		t.Errorf("Stop of what has failed: %v", err)
	}
}

func availableNow(t *testing.T, s *Session) {
	dir := t.TempDir()
	if _, err := s.SQL(t.Context(), "CREATE TEMP VIEW numbers AS SELECT id FROM range(10)"); err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(dir, "in")
	if _, err := s.SQL(t.Context(), "INSERT OVERWRITE DIRECTORY '"+in+"' USING json SELECT id FROM numbers"); err != nil {
		t.Fatal(err)
	}
	q, err := s.ReadStream().Format("json").Schema("id LONG").Load(in).
		WriteStream().Format("parquet").Path(filepath.Join(dir, "out")).Option("checkpointLocation", filepath.Join(dir, "cp")).
		Trigger(AvailableNow()).Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := q.AwaitTermination(t.Context()); err != nil {
		t.Fatal(err)
	}
	df, err := s.SQL(t.Context(), "SELECT count(*) AS n FROM parquet.`"+filepath.Join(dir, "out")+"`")
	if got := collect(t, df, err); len(got) != 1 || got[0] != `{"n":10}` {
		t.Errorf("written: %q", got)
	}
}

// numbersIn writes files of numbers, n rows in all.
func numbersIn(t *testing.T, s *Session, n int) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "in")
	_, err := s.SQL(t.Context(), fmt.Sprintf("INSERT OVERWRITE DIRECTORY '%s' USING json SELECT id FROM range(0, %d, 1, 5)", dir, n))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// slowBatch waits for a batch that takes longer than several streams of the server last.
func slowBatch(t *testing.T, s *Session) {
	in := numbersIn(t, s, 1)
	q, err := s.ReadStream().Format("json").Schema("id LONG").Load(in).Select("java_method('java.lang.Thread', 'sleep', 13000L + id) AS slept").
		WriteStream().Format("noop").Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := q.ProcessAllAvailable(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 10*time.Second {
		t.Errorf("took %v, which is less than the batch", took)
	}
	if last, err := q.LastProgress(t.Context()); err != nil || last == nil || *last.NumInputRows != 1 {
		t.Errorf("LastProgress = %+v, %v", last, err)
	}
	if err := q.Drain(t.Context(), DrainOptions{}); err != nil {
		t.Errorf("Drain of what has caught up: %v", err)
	}
}

func drains(t *testing.T, s *Session) {
	in := numbersIn(t, s, 50)
	q, err := s.ReadStream().Format("json").Schema("id LONG").Option("maxFilesPerTrigger", 1).Load(in).
		WriteStream().Format("memory").QueryName("drained").Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	rows, batches := int64(0), int64(0)
	if err := q.Drain(t.Context(), DrainOptions{Progress: func(p *listener.Progress) {
		if p.BatchID != batches || p.RunID != q.RunID() {
			t.Errorf("batch %d of %s after %d", p.BatchID, p.RunID, batches)
		}
		rows, batches = rows+*p.NumInputRows, batches+1
	}}); err != nil {
		t.Fatal(err)
	}
	if rows != 50 || batches != 5 {
		t.Errorf("%d rows in %d batches were told, want 50 in 5", rows, batches)
	}
	if status, err := q.Status(t.Context()); err != nil || status.IsActive || status.Message != "Stopped" {
		t.Errorf("Status after the drain = %+v, %v", status, err)
	}
	df, err := s.SQL(t.Context(), "SELECT count(*) AS n FROM drained")
	if got := collect(t, df, err); len(got) != 1 || got[0] != `{"n":50}` {
		t.Errorf("written: %q", got)
	}

	endless := s.ReadStream().Format("rate-micro-batch").Option("rowsPerBatch", 10).Load().WriteStream().Format("noop").QueryName("endless")
	q, err = endless.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Drain(t.Context(), DrainOptions{Limit: 2 * time.Second}); !errors.Is(err, ErrNotCaughtUp) {
		t.Errorf("drain of what never ends: %v", err)
	}
	if active, err := q.IsActive(t.Context()); err != nil || active {
		t.Errorf("it goes on after the limit: %v, %v", active, err)
	}

	q, err = s.ReadStream().Format("rate").Load().WriteStream().Format("noop").Trigger(Continuous(time.Second)).Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := q.Drain(t.Context(), DrainOptions{Limit: 3 * time.Second}); !errors.Is(err, ErrNotCaughtUp) {
		t.Errorf("drain of a continuous query: %v", err)
	}

	q, err = s.ReadStream().Format("json").Schema("id LONG").Load(in).Select("raise_error('no such luck') AS v").
		WriteStream().Format("noop").Trigger(AvailableNow()).Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var failed *QueryError
	if err := q.Drain(t.Context(), DrainOptions{}); !errors.As(err, &failed) || !strings.Contains(failed.Message, "no such luck") {
		t.Errorf("drain of what fails: %v", err)
	}
}

func runs(t *testing.T, s *Session) {
	w := s.ReadStream().Format("rate").Option("rowsPerSecond", 5).Load().WriteStream().Format("noop").QueryName("scoped")
	stopped := func(what string) {
		t.Helper()
		if active, err := s.Streams().Active(t.Context()); err != nil || len(active) != 0 {
			t.Errorf("%s: %d queries are left, %v", what, len(active), err)
		}
	}
	failed := errors.New("changed my mind")
	if err := RunQuery(t.Context(), w, func(ctx context.Context, q *StreamingQuery) error {
		if active, err := q.IsActive(ctx); err != nil || !active {
			t.Errorf("IsActive = %v, %v", active, err)
		}
		return failed
	}); !errors.Is(err, failed) {
		t.Errorf("RunQuery = %v", err)
	}
	stopped("an error")

	func() {
		defer func() { _ = recover() }()
		_ = RunQuery(t.Context(), w, func(context.Context, *StreamingQuery) error { panic("oops") })
		t.Error("the panic is gone")
	}()
	stopped("a panic")

	ctx, cancel := context.WithCancel(t.Context())
	if err := RunQuery(ctx, w, func(ctx context.Context, q *StreamingQuery) error {
		cancel()
		return q.AwaitTermination(ctx)
	}); !errors.Is(err, context.Canceled) {
		t.Errorf("RunQuery = %v", err)
	}
	stopped("an end of ctx")

	bad := s.ReadStream().Format("rate").Option("rowsPerSecond", 5).Load().Select("raise_error('no such luck') AS v").WriteStream().Format("noop")
	var query *QueryError
	if err := RunQuery(t.Context(), bad, func(ctx context.Context, q *StreamingQuery) error {
		for {
			if active, err := q.IsActive(ctx); err != nil || !active {
				return err
			}
		}
	}); !errors.As(err, &query) {
		t.Errorf("RunQuery of what fails: %v", err)
	}
}

func eventsOfASession(t *testing.T, s *Session) {
	w := s.ReadStream().Format("rate").Option("rowsPerSecond", 5).Load().WriteStream().Format("noop").Trigger(ProcessingTime(100 * time.Millisecond))
	ticker, err := w.QueryName("ticker").Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"first", "second"} { // the bus is free after each loop
		var kinds []listener.Kind
		var q *StreamingQuery
		for e, err := range s.Streams().Events(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if q == nil { // the ticker's, so the bus is open
				if q, err = w.QueryName(name).Start(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if e.RunID != q.RunID() {
				continue
			}
			if kinds = append(kinds, e.Kind); len(kinds) == 1 && (e.Origin != listener.OriginClient || !bytes.Equal(e.Payload, q.Started()) || e.Name != name) {
				t.Errorf("the first event is %+v, Spark's own start is %s", e, q.Started())
			}
			if len(kinds) == 3 {
				if err := q.Stop(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if e.Kind == listener.KindTerminated {
				break
			}
		}
		if len(kinds) < 4 || kinds[0] != listener.KindStarted || kinds[1] != listener.KindProgress {
			t.Errorf("events %v", kinds)
		}
	}
	if err := ticker.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var last error
	for _, err := range s.Streams().Events(ctx) {
		if last != nil {
			t.Fatal("a pair follows the error")
		}
		last = err
	}
	if !errors.Is(last, context.DeadlineExceeded) {
		t.Errorf("the end of a loop without a break: %v", last)
	}
}
