package console

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/connect/connecttest"
)

func ticks() *configs.Query {
	return &configs.Query{Name: "ticks", Views: map[string]configs.View{"input": {Format: "rate"}}, Output: configs.Output{Format: "memory"}, OutputMode: connect.Append}
}

// run is the run that was started last.
func (w *world) run() connecttest.Query {
	queries := w.job.Queries()
	return queries[len(queries)-1]
}

func TestStart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		fails(t, w.Start(t.Context(), w.place, ticks(), Start{}), "")
		q := w.run()
		w.shows(t, "ticks runs, with id "+q.ID+" and run id "+q.RunID+"\n", "")
		if q.Name != "ticks" || q.Stopped {
			t.Errorf("started %+v", q)
		}
		fails(t, w.Start(t.Context(), w.place, ticks(), Start{}), "Cannot start query with name ticks")
	})
}

// What starts a query and waits for it prints both, a document on each line.
func TestStartAndAwait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.JSON = true
		time.AfterFunc(time.Minute, func() {
			w.job.Change(w.run().RunID, func(q *connecttest.Query) { q.Stopped, q.Exception = true, "boom" })
		})
		fails(t, w.Start(t.Context(), w.place, ticks(), Start{Await: true}), "query ticks failed (STREAM_FAILED): boom")
		lines := strings.Split(strings.TrimSpace(w.out.String()), "\n")
		var started, ended endDocument
		if len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &started) != nil || json.Unmarshal([]byte(lines[1]), &ended) != nil {
			t.Fatalf("printed %s", w.out.String())
		}
		if *started.Name != "ticks" || started.RunID != w.run().RunID || ended.RunID != started.RunID || ended.Exception.Message != "boom" {
			t.Errorf("printed %s", w.out.String())
		}
	})
}

func TestStartAndDrain(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		time.AfterFunc(time.Minute, func() {
			w.job.Change(w.run().RunID, func(q *connecttest.Query) { q.Idle, q.Status = true, "Waiting for next trigger" })
		})
		fails(t, w.Start(t.Context(), w.place, ticks(), Start{Drain: true}), "")
		if q := w.run(); !q.Stopped {
			t.Errorf("%+v was left behind", q)
		}
	})
}

// A session that is missing is made when that is asked for, and stays.
func TestStartCreatesTheSession(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.place.Remote = "sc://127.0.0.1:15002/;user_id=etl;session_id=" + otherID
		fails(t, w.Start(t.Context(), w.place, ticks(), Start{}), "add --create-session to make it")
		fails(t, w.Start(t.Context(), w.place, ticks(), Start{CreateSession: true}), "")
		if !strings.HasPrefix(w.err.String(), "session "+otherID+" ends, with its queries, when no client asks it anything for an hour") {
			t.Errorf("said %q", w.err.String())
		}
		w.out.Reset()
		w.JSON = true
		s, err := w.place.Attach(t.Context())
		fails(t, err, "")
		fails(t, w.Status(t.Context(), s, "ticks"), "")
		fails(t, s.Close(), "")
		if !strings.Contains(w.out.String(), `"isActive": true`) {
			t.Errorf("the query does not run: %s", w.out.String())
		}
	})
}

// A session of its own is not left behind, and so a query that nobody waits for cannot be in one.
func TestStartInASessionOfItsOwn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.place.Remote = "sc://127.0.0.1:15002/;user_id=etl"
		err := w.Start(t.Context(), w.place, ticks(), Start{})
		fails(t, err, "name the session in which the query is to stay, or add --await or --drain")
		if !errors.As(err, new(*connect.RemoteError)) {
			t.Errorf("%v is no error of the connection string", err)
		}
		fails(t, w.Start(cancelled(t, time.Minute), w.place, ticks(), Start{Await: true}), "ticks is stopped, with the session that was its own")
		if n := w.releases(); n != 1 {
			t.Errorf("%d sessions were closed, want the own one", n)
		}
	})
}
