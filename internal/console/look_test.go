package console

import (
	"strings"
	"testing"
	"time"

	"sparkbridge/connect/connecttest"
)

func TestList(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fails(t, w.List(t.Context(), w.session), "")
		w.shows(t, `NAME    STATUS                BATCH  AT        ROWS/S IN  ROWS/S OUT  ID                                    RUN ID
orders  Processing new data   1      00:00:01  5.0        -           `+ordersID+`  `+ordersRun+`
-       Initializing sources  -      -         -          -           `+otherID+`  `+otherRun+`
`, "")
		w.JSON = true
		fails(t, w.List(t.Context(), w.session), "")
		w.document(t, `[{"id":"`+ordersID+`","runId":"`+ordersRun+`","name":"orders","message":"Processing new data","isDataAvailable":false,"isTriggerActive":true,"isActive":true,"lastProgress":`+batch(1, watermark)+`},
			{"id":"`+otherID+`","runId":"`+otherRun+`","name":null,"message":"Initializing sources","isDataAvailable":false,"isTriggerActive":true,"isActive":true,"lastProgress":null}]`)
		w.job.SetQueries()
		fails(t, w.List(t.Context(), w.session), "")
		w.document(t, `[]`)
		w.JSON = false
		fails(t, w.List(t.Context(), w.session), "")
		w.shows(t, "", "no query runs in this session\n")
	})
}

// A query goes by its name and by both its ids, and what it is not called is told.
func TestFind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, name := range []string{"orders", ordersID, ordersRun, ordersID + "/" + ordersRun} {
			q, err := find(t.Context(), w.session, name)
			if err != nil || q.RunID() != ordersRun {
				t.Errorf("%s: got %v and error %v", name, q, err)
			}
		}
		const those = "use one of " + otherID + ", orders (" + ordersID + "); one that has ended is named by id/runId"
		for _, name := range []string{"", "order", "orders/" + ordersRun} {
			_, err := find(t.Context(), w.session, name)
			fails(t, err, those)
		}
		w.job.SetQueries(connecttest.Query{ID: ordersID, RunID: ordersRun, Name: "a"}, connecttest.Query{ID: otherID, RunID: otherRun, Name: ordersID})
		_, err := find(t.Context(), w.session, ordersID)
		fails(t, err, `2 queries are called "`+ordersID+`": use the id of one of `+ordersID+" ("+otherID+"), a ("+ordersID+")")
		w.job.SetQueries()
		_, err = find(t.Context(), w.session, "orders")
		fails(t, err, `no query "orders" runs in this session, nor any other`)
	})
}

func TestStatus(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fails(t, w.Status(t.Context(), w.session, "orders"), "")
		w.shows(t, "name            orders\nid              "+ordersID+"\nrun id          "+ordersRun+
			"\nstatus          Processing new data\nactive          yes\ndata available  no\ntrigger active  yes\n", "")
		w.JSON = true
		fails(t, w.Status(t.Context(), w.session, "orders"), "")
		w.document(t, `{"id":"`+ordersID+`","runId":"`+ordersRun+`","name":"orders","message":"Processing new data","isDataAvailable":false,"isTriggerActive":true,"isActive":true}`)
	})
}

func TestProgress(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fails(t, w.Progress(t.Context(), w.session, "orders"), "")
		w.shows(t, `batch      1, of 00:00:01
rows       5, 5.0/s in, -/s out
took       312 ms: addBatch 200 ms, getBatch 10 ms
watermark  1999-12-31 23:59:00
state      stateStoreSave: 10 rows, 2 updated, 1 too late, 4096 bytes
source     RateStreamV2[rowsPerSecond=5]: 5 rows, up to 2
sink       MemorySink: 5 rows
observed   m: {"rows":3}
`, "")
		w.JSON = true
		fails(t, w.Progress(t.Context(), w.session, "orders"), "")
		w.document(t, batch(1, watermark))
		fails(t, w.Recent(t.Context(), w.session, "orders"), "")
		w.document(t, "["+batch(0, "")+","+batch(1, watermark)+"]")
		fails(t, w.Progress(t.Context(), w.session, otherID), "")
		w.document(t, "null")
		fails(t, w.Recent(t.Context(), w.session, otherID), "")
		w.document(t, "[]")
		w.JSON = false
		fails(t, w.Recent(t.Context(), w.session, "orders"), "")
		w.shows(t, "00:00:00  batch 0, 5 rows, 5.0/s in, -/s out, 312 ms\n"+
			"00:00:01  batch 1, 5 rows, 5.0/s in, -/s out, 312 ms, 10 in state, watermark 1999-12-31 23:59:00\n", "")
		fails(t, w.Progress(t.Context(), w.session, otherID), "")
		w.shows(t, "", otherID+" has not told any progress yet\n")
	})
}

// Each batch is shown once, those too that came in between, until the query ends.
func TestFollow(t *testing.T) {
	for name, c := range map[string]struct {
		recent bool
		fails  string
	}{"the last first": {}, "all first": {recent: true}, "failing": {fails: "boom"}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				recent := []string{batch(0, ""), batch(1, "")}
				adds := func(documents ...string) func() {
					return func() {
						w.job.Change(ordersRun, func(q *connecttest.Query) {
							recent = append(recent, documents...)
							q.Recent = recent
						})
					}
				}
				time.AfterFunc(3500*time.Millisecond, adds(batch(2, ""), batch(3, "")))
				time.AfterFunc(20500*time.Millisecond, adds(idle(20, 4)))
				time.AfterFunc(24100*time.Millisecond, adds(batch(24, "")))
				time.AfterFunc(24200*time.Millisecond, func() { w.ends(c.fails) })
				w.job.Change(ordersRun, func(q *connecttest.Query) { q.Recent = recent })
				err := w.Follow(t.Context(), w.session, "orders", c.recent)
				want, ended := "", "orders has ended\n"
				if c.fails != "" {
					ended = ""
					c.fails = "query orders failed (STREAM_FAILED): " + c.fails
				}
				fails(t, err, c.fails)
				if c.recent {
					want = "00:00:00  batch 0, 5 rows, 5.0/s in, -/s out, 312 ms\n"
				}
				for _, n := range []string{"01  batch 1", "02  batch 2", "03  batch 3", "20  ", "24  batch 24"} {
					want += "00:00:" + n + ", 5 rows, 5.0/s in, -/s out, 312 ms\n"
				}
				w.shows(t, strings.Replace(want, "20  , 5 rows, 5.0/s in, -/s out, 312 ms", "20  no new data", 1), ended)
			})
		})
	}
}

// Programs get a document on each line.
func TestFollowJSON(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.JSON = true
		time.AfterFunc(time.Minute, func() { w.ends("") })
		fails(t, w.Follow(t.Context(), w.session, "orders", true), "")
		w.shows(t, batch(0, "")+"\n"+batch(1, watermark)+"\n", "")
	})
}

// Who has seen enough ends it, which is no failure; the query runs on.
func TestFollowEndsWithContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fails(t, w.Follow(cancelled(t, time.Minute), w.session, "orders", false), "")
		if q := w.job.Queries()[0]; q.Stopped {
			t.Error("the query was stopped")
		}
	})
}

func TestException(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fails(t, w.Exception(t.Context(), w.session, "orders"), "")
		w.shows(t, "orders has not failed\n", "")
		w.JSON = true
		fails(t, w.Exception(t.Context(), w.session, "orders"), "")
		w.document(t, `{"id":"`+ordersID+`","runId":"`+ordersRun+`","name":"orders","exception":null}`)
		w.ends("boom")
		name := ordersID + "/" + ordersRun // it runs no more
		fails(t, w.Exception(t.Context(), w.session, name), "")
		w.document(t, `{"id":"`+ordersID+`","runId":"`+ordersRun+`","name":null,"exception":{"message":"boom","errorClass":"STREAM_FAILED",
			"stackTrace":"boom\n\tat org.apache.spark.sql.execution.streaming.StreamExecution"}}`)
		w.JSON = false
		fails(t, w.Exception(t.Context(), w.session, name), "")
		w.shows(t, "STREAM_FAILED: boom\n", "")
		w.StackTrace = true
		fails(t, w.Exception(t.Context(), w.session, name), "")
		w.shows(t, "STREAM_FAILED: boom\n\nboom\n\tat org.apache.spark.sql.execution.streaming.StreamExecution\n", "")
	})
}

func TestExplain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fails(t, w.Explain(t.Context(), w.session, "orders", true), "")
		w.shows(t, "== Physical Plan ==\n", "")
		w.JSON = true
		fails(t, w.Explain(t.Context(), w.session, "orders", false), "")
		w.document(t, `{"id":"`+ordersID+`","runId":"`+ordersRun+`","name":"orders","explain":"== Physical Plan =="}`)
	})
}
