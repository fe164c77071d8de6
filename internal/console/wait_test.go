package console

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sparkbridge/connect"
	"sparkbridge/connect/connecttest"
)

const (
	ended      = `{"id":"` + ordersID + `","runId":"` + ordersRun + `","name":"orders","isActive":false,"exception":`
	stillRuns  = `{"id":"` + ordersID + `","runId":"` + ordersRun + `","name":"orders","isActive":true,"exception":null,"lastProgress":`
	boomTrace  = `boom\n\tat org.apache.spark.sql.execution.streaming.StreamExecution`
	boomFailed = `{"message":"boom","errorClass":"STREAM_FAILED","stackTrace":"` + boomTrace + `"}`
)

// A wait of many slices and streams ends with the query, and its outcome is that of the query.
func TestAwait(t *testing.T) {
	for name, c := range map[string]struct{ message, fails, says, document string }{
		"ends":  {"", "", "orders has ended, with batch 1, 5 rows, 5.0/s in, -/s out, 312 ms\n", ended + "null"},
		"fails": {"boom", "query orders failed (STREAM_FAILED): boom", "", ended + boomFailed},
	} {
		t.Run(name, func(t *testing.T) {
			for _, asJSON := range []bool{false, true} {
				inWorld(t, func(t *testing.T, w *world) {
					w.JSON = asJSON
					w.job.Change(ordersRun, func(q *connecttest.Query) { q.Recent = []string{batch(1, "")} })
					time.AfterFunc(10*time.Minute, func() { w.ends(c.message) })
					fails(t, w.Await(t.Context(), w.session, "orders", 0), c.fails)
					if asJSON {
						w.document(t, c.document+`,"lastProgress":`+batch(1, "")+"}")
						return
					}
					w.shows(t, c.says, "orders: batch 1, 5 rows, 5.0/s in, -/s out, 312 ms\n")
				})
			}
		})
	}
}

// The query runs on when the time is over, and when the waiting is given up.
func TestAwaitLeavesTheQuery(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.JSON = true
		began := time.Now()
		fails(t, w.Await(t.Context(), w.session, "orders", 90*time.Second), "orders still runs after 1m30s")
		if took := time.Since(began); took < 90*time.Second || took > 100*time.Second {
			t.Errorf("waited for %s", took)
		}
		w.document(t, stillRuns+batch(1, watermark)+"}")
		fails(t, w.Await(cancelled(t, time.Minute), w.session, "orders", 0), "stopped waiting: orders runs on")
		fails(t, w.AwaitAny(cancelled(t, time.Minute), w.session, 0), "stopped waiting: the queries run on")
		w.job.Change(ordersRun, func(q *connecttest.Query) { q.DataAvailable = true })
		fails(t, w.Drain(cancelled(t, time.Minute), w.session, "orders", 0), "stopped waiting: orders runs on")
		if q := w.job.Queries()[0]; q.Stopped {
			t.Error("the query was stopped")
		}
		w.shows(t, "", "")
	})
}

// A run that has ended before needs no waiting.
func TestAwaitWhatHasEnded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.ends("")
		began := time.Now()
		fails(t, w.Await(t.Context(), w.session, ordersID+"/"+ordersRun, time.Second), "")
		if took := time.Since(began); took != 0 {
			t.Errorf("waited for %s", took)
		}
	})
}

func TestAwaitAnyAndReset(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.JSON = true
		fails(t, w.AwaitAny(t.Context(), w.session, time.Minute), "no query has ended within 1m0s")
		w.document(t, `{"terminated":false,"exception":null}`)
		w.ends("")
		fails(t, w.AwaitAny(t.Context(), w.session, 0), "")
		w.document(t, `{"terminated":true,"exception":null}`)
		fails(t, w.Reset(t.Context(), w.session), "")
		w.document(t, `{"resetTerminated":true}`)
		time.AfterFunc(time.Minute, func() {
			w.job.Change(otherRun, func(q *connecttest.Query) { q.Stopped, q.Exception = true, "boom" })
		})
		fails(t, w.AwaitAny(t.Context(), w.session, time.Hour), "query "+otherID+" failed (STREAM_FAILED): boom")
		w.document(t, `{"terminated":true,"id":"`+otherID+`","runId":"`+otherRun+`","exception":`+boomFailed+"}")
		fails(t, w.Reset(t.Context(), w.session), "")
		w.out.Reset()
		fails(t, w.AwaitAny(t.Context(), w.session, time.Minute), "no query has ended within 1m0s")
	})
}

func TestDrain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.job.Change(ordersRun, func(q *connecttest.Query) { q.DataAvailable = true })
		for after, n := range map[time.Duration]int{3500: 9, 5500: 2} { // the first is not told: a log is left in peace
			time.AfterFunc(after*time.Millisecond, func() {
				w.job.Change(ordersRun, func(q *connecttest.Query) { q.Recent = append(q.Recent, batch(n, "")) })
			})
		}
		time.AfterFunc(15500*time.Millisecond, func() {
			w.job.Change(ordersRun, func(q *connecttest.Query) {
				q.DataAvailable, q.Idle, q.Status = false, true, "Waiting for next trigger"
			})
		})
		fails(t, w.Drain(t.Context(), w.session, "orders", 0), "")
		w.shows(t, "orders has ended, with batch 2, 5 rows, 5.0/s in, -/s out, 312 ms\n",
			"orders: batch 1, 5 rows, 5.0/s in, -/s out, 312 ms, 10 in state, watermark 1999-12-31 23:59:00\n"+
				"orders: batch 2, 5 rows, 5.0/s in, -/s out, 312 ms\n")
		if !w.job.Queries()[0].Stopped {
			t.Error("the query was not stopped")
		}
	})
}

func TestDrainAtItsLimit(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.JSON = true
		w.job.Change(ordersRun, func(q *connecttest.Query) { q.DataAvailable = true })
		fails(t, w.Drain(t.Context(), w.session, "orders", time.Minute), "orders was stopped after 1m0s, before it had caught up")
		w.document(t, ended+`null,"lastProgress":`+batch(1, watermark)+"}")
		if !w.job.Queries()[0].Stopped {
			t.Error("the query was not stopped")
		}
	})
}

func TestStop(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.JSON = true
		fails(t, w.Stop(t.Context(), w.session, "orders"), "")
		w.document(t, ended+`null,"lastProgress":`+batch(1, watermark)+"}")
		fails(t, w.Stop(t.Context(), w.session, "orders"), `no query "orders" runs`)
		fails(t, w.Stop(t.Context(), w.session, ordersID+"/"+ordersRun), "") // once more changes nothing
	})
}

// A failure brings its stack trace for who asks for it.
func TestTrace(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		failed := failedError{&connect.QueryError{QueryID: ordersID, ErrorClass: "STREAM_FAILED", Message: "org.apache.spark.X: [BOOM] no: more\nat all\n=== Streaming Query ===\nPlan", StackTrace: "at x\n"}}
		fails(t, failed, "query "+ordersID+" failed (STREAM_FAILED): [BOOM] no: more\nat all")
		w.Trace(failed)
		w.shows(t, "", "")
		w.StackTrace = true
		w.Trace(failed)
		w.Trace(&connect.Error{StackTrace: "at y"})
		w.Trace(errors.New("none"))
		w.Trace(nil)
		w.shows(t, "", "at x\nat y\n")
	})
}

// On a terminal a wait shows in two lines how the query comes on, which are gone at its end.
func TestAwaitOnTerminal(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.OnTerminal(60)
		w.JSON = true // what is shown at a terminal disturbs no program
		time.AfterFunc(2500*time.Millisecond, func() { w.ends("") })
		fails(t, w.Await(t.Context(), w.session, "orders", 0), "")
		w.document(t, ended+`null,"lastProgress":`+batch(1, watermark)+"}")
		said := w.err.String()
		for _, want := range []string{
			"orders: batch 1, 5 rows, 5.0/s in, -/s out, 312 ms, 10 in…\n  Processing new data (0s)",
			"\n  Processing new data (0s)\r\x1b[K\x1b[1A\x1b[Korders: ", "(2s)",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("the terminal was told %q, without %q", said, want)
			}
		}
		if got := seen(said); got != "" {
			t.Errorf("the terminal shows %q at the end", got)
		}
	})
}
