package bridge

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
	"sparkbridge/internal/watch"
	"sparkbridge/internal/web"
	"sparkbridge/listener"
)

// configured is a query as the configuration has it.
func configured(name string) configs.Query {
	return configs.Query{
		Name: name, Views: map[string]configs.View{"v": {Format: "rate"}},
		Output:     configs.Output{Format: "parquet", Path: "/out", Checkpoint: configs.SparkText("/checkpoints/" + name)},
		OutputMode: connect.Append,
	}
}

// runsOf are the runs of a query in the session that is there now.
func (w *world) runsOf(name string) (runs []connecttest.Query) {
	w.t.Helper()
	s, there := w.spark.Session("u", sessionID)
	if !there {
		w.t.Fatal("there is no session")
	}
	for _, q := range s.Queries() {
		if q.Name == name {
			runs = append(runs, q)
		}
	}
	return runs
}

// starts is what the bridge shows of its starts.
func (w *world) starts() (starts []string) {
	for _, start := range w.face.status().Sources[0].Starts {
		starts = append(starts, start.Name+" "+string(start.State))
	}
	return starts
}

// A source with queries does not wait for one: it takes the bus, prepares the session and
// starts them, and Spark's own word of it is the first event of each.
func TestConfiguredQueriesAreStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.Queries = []configs.Query{configured("a"), configured("b")}
		w.source.Conf = map[string]configs.Setting{"spark.sql.shuffle.partitions": "8"}
		w.source.Setup = []configs.SparkText{"CREATE TABLE IF NOT EXISTS t"}
		s := w.job()
		var order []string
		s.Refuse(func(c *sparkpb.Command) error {
			switch {
			case c.GetStreamingQueryListenerBusCommand().GetAddListenerBusListener():
				order = append(order, "bus")
			case c.GetSqlCommand() != nil:
				order = append(order, c.GetSqlCommand().GetSql())
			case c.GetWriteStreamOperationStart() != nil:
				order = append(order, "start "+c.GetWriteStreamOperationStart().GetQueryName())
			}
			return nil
		})
		w.start()
		after(time.Minute)
		runs := append(w.runsOf("a"), w.runsOf("b")...)
		if len(runs) != 2 {
			t.Fatalf("the runs are %+v, log:\n%s", runs, w.log)
		}
		w.want("starts", w.starts(), "a started", "b started")
		for _, run := range runs {
			s.Progress(strings.ReplaceAll(progress(run.RunID, 0), "q-"+run.RunID, run.ID))
		}
		after(time.Minute)
		w.halt()
		w.want("commands", order, "bus", "CREATE TABLE IF NOT EXISTS t", "start a", "start b")
		w.want("events", w.ids(), runs[0].RunID+":started", runs[1].RunID+":started", runs[0].RunID+":progress:0", runs[1].RunID+":progress:0")
		for _, e := range w.events() {
			if e.Kind == listener.KindStarted && e.Origin != listener.OriginClient {
				t.Errorf("the start of %s is of origin %s", e.RunID, e.Origin)
			}
		}
		for _, run := range w.runsOf("a") {
			if run.Stopped {
				t.Error("the query stopped with the bridge")
			}
		}
	})
}

// What runs already is left alone: of the job itself, and of a bridge before.
func TestRunningQueriesAreLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.Queries = []configs.Query{configured("mine"), configured("n-a")}
		w.source.Setup = []configs.SparkText{"CREATE TABLE IF NOT EXISTS t"}
		s := w.job(query("a"))
		w.start()
		after(time.Minute)
		w.want("starts", w.starts(), "mine started", "n-a running")
		w.halt()
		w.start()
		after(time.Minute)
		w.want("starts of the next bridge", w.starts(), "mine running", "n-a running")
		w.halt()
		if len(w.runsOf("mine")) != 1 || len(w.runsOf("n-a")) != 1 {
			t.Errorf("a query was started twice: %+v", s.Queries())
		}
		if got := s.Statements(); len(got) != 1 {
			t.Errorf("setup was run for queries that were running: %q", got)
		}
	})
}

// A query that has ended is its users' affair; a driver that is started again gets all of
// them anew.
func TestQueriesAreStartedAgainInANewSessionOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.CreateSession = true
		w.source.Queries = []configs.Query{configured("a")}
		w.source.Setup = []configs.SparkText{"CREATE TABLE IF NOT EXISTS t"}
		w.start()
		after(time.Minute)
		first := w.runsOf("a")
		if len(first) != 1 {
			t.Fatalf("the runs are %+v, log:\n%s", first, w.log)
		}
		s, _ := w.spark.Session("u", sessionID)
		s.Change(first[0].RunID, func(q *connecttest.Query) { q.Stopped = true })
		after(time.Hour)
		if got := w.runsOf("a"); len(got) != 1 {
			t.Errorf("an ended query was started again: %+v", got)
		}
		if err := errors.Join(w.spark.Stop(), w.spark.Restart()); err != nil {
			t.Fatal(err)
		}
		after(10 * time.Minute)
		again := w.runsOf("a")
		if len(again) != 1 || again[0].ID != first[0].ID || again[0].RunID == first[0].RunID {
			t.Fatalf("after the restart the runs are %+v, before %+v", again, first)
		}
		if s, _ := w.spark.Session("u", sessionID); len(s.Statements()) != 1 {
			t.Errorf("setup in the new session: %q", s.Statements())
		}
		w.halt()
		w.want("starts", slices.DeleteFunc(w.ids(), func(id string) bool { return !strings.Contains(id, ":started") }),
			first[0].RunID+":started", again[0].RunID+":started")
	})
}

// A query that Spark refuses is told once, keeps no other back, and does the source no harm.
func TestARefusedQueryIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.Queries = []configs.Query{configured("bad"), configured("good")}
		s := w.job()
		refusal := w.spark.Error("STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION", "not supported: password=hunter2")
		tries := 0
		s.Refuse(func(c *sparkpb.Command) error {
			if c.GetWriteStreamOperationStart().GetQueryName() != "bad" {
				return nil
			}
			tries++
			return refusal
		})
		w.start()
		after(2 * time.Hour)
		w.want("starts", w.starts(), "bad failed", "good started")
		if n := w.log.count("query was not started"); n != 1 || tries != 1 {
			t.Errorf("it was tried %d times and told %d times:\n%s", tries, n, w.log)
		}
		status := w.face.status()
		if why := status.Sources[0].Starts[0].Error; !strings.Contains(why, "STREAMING_OUTPUT_MODE") {
			t.Errorf("the reason is %q", why)
		}
		if strings.Contains(w.log.String()+status.Sources[0].Starts[0].Error, "hunter2") {
			t.Error("a password is shown")
		}
		if state := status.Sources[0].State; state != "attached" {
			t.Errorf("the source is %s", state)
		}
		health := httptest.NewRecorder()
		web.New(web.Options{Status: func() watch.Status { return status }, Counts: func() watch.Counts { return watch.Counts{} }, Logger: nil}).
			ServeHTTP(health, httptest.NewRequest(http.MethodGet, "/readyz?verbose", nil))
		if health.Code != 200 || !strings.Contains(health.Body.String(), "[-] query etl/bad: not started (does not count)\n") || strings.Contains(health.Body.String(), "good") {
			t.Errorf("health is %d:\n%s", health.Code, health.Body)
		}
		w.halt()
	})
}

// A start of which it is not known what became is neither given up nor repeated blindly: Spark is
// asked what runs.
func TestAStartThatSparkHasForgotten(t *testing.T) {
	for name, reached := range map[string]bool{"it was begun": true, "it was not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, connecttest.Options{})
				w.source.Queries = []configs.Query{configured("a")}
				s := w.job()
				forgotten, tries := w.spark.Error("INVALID_HANDLE.OPERATION_NOT_FOUND", "gone"), 0
				s.Refuse(func(c *sparkpb.Command) error {
					if c.GetWriteStreamOperationStart() == nil {
						return nil
					}
					if tries++; tries > 1 {
						return nil
					}
					if reached {
						go s.SetQueries(connecttest.Query{ID: "q-1", RunID: "r-1", Name: "a"})
					}
					return forgotten
				})
				w.start()
				after(time.Hour)
				if reached {
					w.want("starts", w.starts(), "a running")
				} else {
					w.want("starts", w.starts(), "a started")
				}
				if got := w.runsOf("a"); len(got) != 1 {
					t.Errorf("the runs are %+v", got)
				}
				w.halt()
			})
		})
	}
}

// Without what prepares them, queries are not started: they would run otherwise than was meant.
func TestNoQueryIsStartedInASessionThatIsNotPrepared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.Queries = []configs.Query{configured("a"), configured("b")}
		w.source.Setup = []configs.SparkText{"CREATE TALBE t", "CREATE TABLE u"}
		s := w.job()
		refusal := w.spark.Error("PARSE_SYNTAX_ERROR", "Syntax error at or near 'TALBE'")
		s.Refuse(func(c *sparkpb.Command) error {
			if c.GetSqlCommand() != nil {
				return refusal
			}
			return nil
		})
		w.start()
		after(time.Hour)
		w.want("starts", w.starts(), "a failed", "b failed")
		if n := w.log.count("setup[0]"); n != 2 || len(s.Queries()) != 0 {
			t.Errorf("%d lines tell of it, and the session has %d queries:\n%s", n, len(s.Queries()), w.log)
		}
		w.halt()
	})
}

// Where the bus is left to others, queries are started all the same; their start is inferred then.
func TestQueriesAreStartedWhilePolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		w.source.Mode = configs.ModePoll
		w.source.Queries = []configs.Query{configured("a")}
		w.job()
		w.start()
		after(time.Minute)
		runs := w.runsOf("a")
		if len(runs) != 1 {
			t.Fatalf("the runs are %+v, log:\n%s", runs, w.log)
		}
		w.halt()
		w.want("events", w.ids(), runs[0].RunID+":started:inferred")
	})
}
