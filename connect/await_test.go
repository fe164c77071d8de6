package connect

import (
	"context"
	"errors"
	"testing"
	"time"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

// A long wait is many short ones on the server, through all weather, and leaves none of
// them behind.
func TestAwaitTerminationInSlices(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		q := w.run(connecttest.Query{})
		for i := range 3 {
			time.AfterFunc(time.Duration(i+1)*7*time.Minute, w.server.Disconnect)
		}
		time.AfterFunc(30*time.Minute, func() {
			w.server.Refuse(true)
			w.server.Disconnect()
		})
		time.AfterFunc(33*time.Minute, func() { w.server.Refuse(false) })
		time.AfterFunc(time.Hour, func() { w.job.Change(testRun, func(q *connecttest.Query) { q.Stopped = true }) })
		began := time.Now()
		if err := q.AwaitTermination(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < time.Hour || took > time.Hour+time.Minute {
			t.Errorf("took %v, want an hour", took)
		}
		slices := 0
		for _, r := range connecttest.CallsOf[*sparkpb.ExecutePlanRequest](w.server) {
			await := r.GetPlan().GetCommand().GetStreamingQueryCommand().GetAwaitTermination()
			if await == nil {
				continue
			}
			if slices++; await.TimeoutMs == nil || await.GetTimeoutMs() <= 0 || await.GetTimeoutMs() > awaitSlice.Milliseconds() {
				t.Errorf("the server waits for %v ms", await.TimeoutMs)
			}
		}
		if slices < 300 {
			t.Errorf("%d waits in an hour", slices)
		}
	})
}

func TestWaitsEndWithTheirContext(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		q := w.run(connecttest.Query{DataAvailable: true})
		for what, wait := range map[string]func(context.Context) error{
			"AwaitTermination": q.AwaitTermination, "ProcessAllAvailable": q.ProcessAllAvailable, "AwaitAnyTermination": w.s.Streams().AwaitAnyTermination,
		} {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
			if err := wait(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 26*time.Second {
				t.Errorf("%s after %v: %v", what, time.Since(began), err)
			}
			cancel()
		}
	})
}

// A run that fails ends all waits for it with what it has failed with.
func TestWaitsForARunThatFails(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		q := w.run(connecttest.Query{DataAvailable: true})
		waits := map[string]func(context.Context) error{
			"AwaitTermination": q.AwaitTermination, "ProcessAllAvailable": q.ProcessAllAvailable, "AwaitAnyTermination": w.s.Streams().AwaitAnyTermination,
		}
		type outcome struct {
			what string
			err  error
		}
		over := make(chan outcome)
		for what, wait := range waits {
			go func() { over <- outcome{what, wait(t.Context())} }()
		}
		time.Sleep(time.Minute)
		w.job.Change(testRun, func(q *connecttest.Query) { q.Stopped, q.Exception = true, "no such luck" })
		for range waits {
			var failed *QueryError
			if o := <-over; !errors.As(o.err, &failed) || failed.QueryID != testQuery || failed.RunID != testRun || failed.Message != "no such luck" || failed.ErrorClass != "STREAM_FAILED" || failed.StackTrace == "" {
				t.Errorf("%s: %v", o.what, o.err)
			}
		}
	})
}

func TestAwaitAnyTerminationRemembers(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		q := w.run(connecttest.Query{})
		if err := q.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := w.s.Streams().AwaitAnyTermination(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.s.Streams().ResetTerminated(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := w.s.Streams().AwaitAnyTermination(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after ResetTerminated: %v", err)
		}
	})
}
