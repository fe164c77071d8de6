package connect

import (
	"context"
	"errors"
	"testing"
	"time"

	"sparkbridge/connect/connecttest"
)

// However f is left, the query is stopped.
func TestRunQueryStopsWhatItStarts(t *testing.T) {
	changed := errors.New("changed my mind")
	for what, f := range map[string]func(*world, context.Context, *StreamingQuery) error{
		"nil":   func(*world, context.Context, *StreamingQuery) error { return nil },
		"error": func(*world, context.Context, *StreamingQuery) error { return changed },
		"panic": func(*world, context.Context, *StreamingQuery) error { panic(changed) },
		"ctx":   func(_ *world, ctx context.Context, q *StreamingQuery) error { return q.AwaitTermination(ctx) },
		"outage": func(w *world, _ context.Context, _ *StreamingQuery) error {
			w.server.Refuse(true)
			w.server.Disconnect()
			time.AfterFunc(20*time.Second, func() { w.server.Refuse(false) })
			return changed
		},
		"failure": func(w *world, _ context.Context, q *StreamingQuery) error {
			w.job.Change(q.RunID(), func(q *connecttest.Query) { q.Stopped, q.Exception = true, "no such luck" })
			return nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
				defer cancel()
				var panicked any
				err := func() error {
					defer func() { panicked = recover() }()
					return RunQuery(ctx, w.writer(), func(ctx context.Context, q *StreamingQuery) error { return f(w, ctx, q) })
				}()
				if queries := w.job.Queries(); len(queries) != 1 || !queries[0].Stopped {
					t.Errorf("queries %+v", queries)
				}
				var failed *QueryError
				want := map[string]bool{
					"nil": err == nil, "error": errors.Is(err, changed), "panic": panicked != nil, "outage": errors.Is(err, changed),
					"ctx": errors.Is(err, context.DeadlineExceeded), "failure": errors.As(err, &failed) && failed.Message == "no such luck",
				}
				if !want[what] {
					t.Errorf("RunQuery = %v, panic %v", err, panicked)
				}
			})
		})
	}
}

func TestRunQueryOfWhatCannotStart(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.job.SetQueries(connecttest.Query{ID: "q", RunID: "r", Name: "orders"})
		err := RunQuery(t.Context(), w.writer(), func(context.Context, *StreamingQuery) error {
			t.Error("called without a query")
			return nil
		})
		if err == nil || w.job.Queries()[0].Stopped {
			t.Errorf("RunQuery = %v, queries %+v", err, w.job.Queries())
		}
	})
}
