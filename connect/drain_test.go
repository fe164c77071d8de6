package connect

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"sparkbridge/connect/connecttest"
	"sparkbridge/listener"
)

// later changes the run as Spark would, after d.
func (w *world) later(d time.Duration, change func(*connecttest.Query)) {
	time.AfterFunc(d, func() { w.job.Change(testRun, change) })
}

// A run is stopped when a trigger has found nothing more, and not while Spark has not looked
// yet; each batch is told once, in order, and no idle trigger.
func TestDrainStopsWhatHasCaughtUp(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		q := w.run(connecttest.Query{Status: "Initializing StreamExecution", Idle: true})
		w.later(10*time.Second, func(q *connecttest.Query) { q.Status = "Initializing sources" })
		w.later(20*time.Second, func(q *connecttest.Query) { q.Status, q.Idle = "Getting offsets from files", false })
		w.later(30*time.Second, func(q *connecttest.Query) { q.Status, q.DataAvailable = "Processing new data", true })
		w.later(40*time.Second, func(q *connecttest.Query) {
			q.Status, q.Idle, q.Recent = "Waiting for next trigger", true, []string{batch(0, 5, "addBatch"), batch(1, 6, "addBatch")}
		})
		w.later(50*time.Second, func(q *connecttest.Query) {
			q.Status, q.DataAvailable = "Waiting for data to arrive", false
			q.Recent = append(q.Recent, batch(2, 7, "addBatch"), batch(3, 0, "latestOffset"))
		})
		time.AfterFunc(35*time.Second, w.server.Disconnect)
		began := time.Now()
		var told []int64
		if err := q.Drain(t.Context(), DrainOptions{Progress: func(p *listener.Progress) { told = append(told, p.BatchID) }}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 50*time.Second || took > 55*time.Second || !w.job.Queries()[0].Stopped {
			t.Errorf("took %v, then %+v", took, w.job.Queries()[0])
		}
		if !slices.Equal(told, []int64{0, 1, 2}) {
			t.Errorf("batches %v were told", told)
		}
	})
}

func TestDrainHasALimit(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		q := w.run(connecttest.Query{DataAvailable: true})
		began := time.Now()
		if err := q.Drain(t.Context(), DrainOptions{Limit: time.Minute}); !errors.Is(err, ErrNotCaughtUp) {
			t.Fatal(err)
		}
		if took := time.Since(began); took < time.Minute || took > 65*time.Second || !w.job.Queries()[0].Stopped {
			t.Errorf("took %v, then %+v", took, w.job.Queries()[0])
		}
	})
}

// A continuous query has no triggers, and never says that data is there.
func TestAContinuousQueryNeverCatchesUp(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		q := w.run(connecttest.Query{Status: "Starting new streaming query", Idle: true})
		w.later(5*time.Second, func(q *connecttest.Query) { q.Status = "Running" })
		w.later(10*time.Second, func(q *connecttest.Query) { q.Status = "Committing epoch 0" })
		began := time.Now()
		if err := q.Drain(t.Context(), DrainOptions{Limit: time.Minute}); !errors.Is(err, ErrNotCaughtUp) || time.Since(began) < time.Minute {
			t.Errorf("Drain = %v after %v", err, time.Since(began))
		}
	})
}

func TestDrainOfWhatEndsByItself(t *testing.T) {
	for _, exception := range []string{"", "no such luck"} {
		inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
			q := w.run(connecttest.Query{DataAvailable: true})
			w.later(time.Minute, func(q *connecttest.Query) {
				q.Stopped, q.Exception, q.Recent = true, exception, []string{batch(0, 5, "addBatch")}
			})
			told := 0
			err := q.Drain(t.Context(), DrainOptions{Progress: func(*listener.Progress) { told++ }})
			var failed *QueryError
			if exception == "" && err != nil || exception != "" && (!errors.As(err, &failed) || failed.Message != exception) {
				t.Errorf("Drain = %v", err)
			}
			if told != 1 {
				t.Errorf("%d batches were told", told)
			}
		})
	}
}

func TestADrainThatIsGivenUpStopsNothing(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		q := w.run(connecttest.Query{DataAvailable: true})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := q.Drain(ctx, DrainOptions{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if w.job.Queries()[0].Stopped {
			t.Error("the query was stopped")
		}
	})
}
