//go:build integration

package connect

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestQueriesOnSpark(t *testing.T) {
	for _, version := range []string{"4.2", "4.0", "3.5"} {
		t.Run(version, func(t *testing.T) {
			r := startReal(t, version, "")
			t.Run("life", func(t *testing.T) { lifeOfAQuery(t, r) })
			t.Run("failure", func(t *testing.T) { failingQuery(t, r.open(t)) })
			t.Run("available now", func(t *testing.T) { availableNow(t, r.open(t)) })
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
	for name, wait := range map[string]func(context.Context) error{
		"AwaitTermination":    q.AwaitTermination,
		"AwaitAnyTermination": s.Streams().AwaitAnyTermination,
		"ProcessAllAvailable": q.ProcessAllAvailable,
	} {
		var failed *QueryError
		if err := wait(t.Context()); !errors.As(err, &failed) {
			t.Errorf("%s: %v", name, err)
		} else if !strings.Contains(failed.Message, "no such luck xxx") || len(failed.Message) < 5000 || failed.RunID != q.RunID() || failed.ErrorClass != "STREAM_FAILED" || !strings.Contains(failed.StackTrace, "\tat ") {
			t.Errorf("%s: class %q of run %s, message of %d bytes: %.200s", name, failed.ErrorClass, failed.RunID, len(failed.Message), failed.Message)
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
