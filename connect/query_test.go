package connect

import (
	"errors"
	"fmt"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
	"sparkbridge/listener"
)

const (
	testQuery = "7d5a0a5e-4e5f-4c5e-9d0e-7f1a3f3f0a01"
	testRun   = "7d5a0a5e-4e5f-4c5e-9d0e-7f1a3f3f0a02"
)

// batch is what recent_progress tells of a batch; the trace of an idle trigger has no addBatch.
func batch(id int64, rows int, phase string) string {
	return fmt.Sprintf(`{"id":"`+testQuery+`","runId":"`+testRun+`","timestamp":"2026-01-01T00:00:00.000Z","batchId":%d,"durationMs":{"triggerExecution":9,"%s":1},"sources":[{"numInputRows":%d}]}`, id, phase, rows)
}

// run is a query of the job, as another process sees it.
func (w *world) run(q connecttest.Query) *StreamingQuery {
	q.ID, q.RunID = testQuery, testRun
	w.job.SetQueries(q)
	return w.s.Streams().Run(testQuery, testRun)
}

func TestQuestionsOfAQuery(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		q := w.run(connecttest.Query{Plan: "== Physical Plan ==", DataAvailable: true})
		if s, err := q.Status(t.Context()); err != nil || s != (Status{"Processing new data", true, true, true}) {
			t.Errorf("Status = %+v, %v", s, err)
		}
		if p, err := q.LastProgress(t.Context()); err != nil || p != nil {
			t.Errorf("LastProgress before the first batch = %+v, %v", p, err)
		}
		if plan, err := q.Explain(t.Context(), false); err != nil || plan != "== Physical Plan ==" {
			t.Errorf("Explain = %q, %v", plan, err)
		}
		if failed, err := q.Exception(t.Context()); err != nil || failed != nil {
			t.Errorf("Exception = %v, %v", failed, err)
		}
		w.job.Change(testRun, func(q *connecttest.Query) { q.Recent = []string{batch(6, 1, "addBatch"), batch(7, 3, "addBatch")} })
		if p, err := q.LastProgress(t.Context()); err != nil || p == nil || p.BatchID != 7 || *p.NumInputRows != 3 {
			t.Errorf("LastProgress = %+v, %v", p, err)
		}
		if all, err := q.RecentProgress(t.Context()); err != nil || len(all) != 2 || all[0].BatchID != 6 {
			t.Errorf("RecentProgress = %+v, %v", all, err)
		}
		if q.Started() != nil {
			t.Error("it was started by another")
		}
	})
}

func TestWhatIsNoQuery(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		q := w.s.Streams().Run(testQuery, testRun)
		_, asked := q.Status(t.Context())
		for what, err := range map[string]error{
			"Status": asked, "Stop": q.Stop(t.Context()), "AwaitTermination": q.AwaitTermination(t.Context()), "Drain": q.Drain(t.Context(), DrainOptions{}),
		} {
			if !errors.Is(err, listener.ErrNoQuery) {
				t.Errorf("%s: %v", what, err)
			}
		}
		var refused *Error
		if found, err := w.s.Streams().Get(t.Context(), "orders"); !errors.As(err, &refused) || found != nil {
			t.Errorf("Get by a name: %v, %v", found, err)
		}
	})
}

// A query is found by its id while it runs, with the run that it is in, whatever run ended.
func TestQueriesAreFoundAgain(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.job.SetQueries(connecttest.Query{ID: testQuery, RunID: "r1", Stopped: true}, connecttest.Query{ID: testQuery, RunID: "r2", Name: "orders"})
		found, err := w.s.Streams().Get(t.Context(), testQuery)
		if err != nil || found == nil || found.ID() != testQuery || found.RunID() != "r2" || found.Name() != "orders" {
			t.Fatalf("Get = %+v, %v", found, err)
		}
		if active, err := w.s.Streams().Active(t.Context()); err != nil || len(active) != 1 || active[0].RunID() != "r2" {
			t.Errorf("Active = %+v, %v", active, err)
		}
		if err := found.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found, err := w.s.Streams().Get(t.Context(), testQuery); err != nil || found != nil {
			t.Errorf("Get of what has ended = %+v, %v", found, err)
		}
	})
}

// The answer to a stop is lost: it is awaited, and nothing goes wrong when it is asked for again.
func TestALostStop(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		q := w.run(connecttest.Query{})
		w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Late: true, Err: status.Error(codes.Unavailable, "gone")})
		for range 2 {
			if err := q.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if active, err := q.IsActive(t.Context()); err != nil || active {
			t.Errorf("IsActive = %v, %v", active, err)
		}
	})
}

func TestQueryErrorNamesTheQuery(t *testing.T) {
	for _, name := range []string{"", "orders"} {
		want := "query " + name + " failed: no such luck"
		if name == "" {
			want = "query q failed: no such luck"
		}
		if got := (&QueryError{QueryID: "q", Name: name, Message: "no such luck"}).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
