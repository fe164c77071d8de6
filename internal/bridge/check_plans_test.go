package bridge

import (
	"testing"
	"testing/synctest"

	"sparkbridge/configs"
	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

// Queries are planned in a session that the check makes and closes; the job's stays as it is.
func TestCheckPlansQueries(t *testing.T) {
	bus := [3]string{"ok", "bus", ""}
	version := [3]string{"ok", "version", ""}
	for name, c := range map[string]struct {
		prepare func(w *world)
		refuse  string // error class of what is planned over table t
		code    int
		want    [][3]string
	}{
		"right": {func(w *world) { w.job() }, "", 0, [][3]string{
			serverOK, tokenOK, sessionOK, version, bus, {"ok", "queries", "none is active"}, {"ok", "plan", "a: can be planned; the bridge starts it"},
		}},
		"before there is a session": {func(*world) {}, "", 0, [][3]string{
			serverOK, tokenOK, {"ok", "session", "not there yet"}, {"ok", "plan", "a: can be planned; the bridge starts it"},
		}},
		"runs already": {func(w *world) {
			w.source.Queries[0].Name = "n-a"
			w.source.Mode = configs.ModePoll
			w.job(query("a"))
		}, "", 0, [][3]string{
			serverOK, tokenOK, sessionOK, version, bus, {"unknown", "query", "n-a"}, {"ok", "plan", "n-a: can be planned; it runs already, and is left alone"},
		}},
		"a table of the job": {func(*world) {}, "TABLE_OR_VIEW_NOT_FOUND", 0, [][3]string{
			serverOK, tokenOK, {"ok", "session", ""}, {"unknown", "plan", "the job's session may have it"},
		}},
		"a table of setup": {func(w *world) {
			w.source.CreateSession = true
			w.source.Setup = []configs.SparkText{"CREATE TABLE t"}
		}, "TABLE_OR_VIEW_NOT_FOUND", 0, [][3]string{
			serverOK, tokenOK, {"ok", "session", ""}, {"unknown", "setup", "statements in setup: 1"}, {"unknown", "plan", "setup may make it"},
		}},
		"a table of nobody": {func(w *world) { w.source.CreateSession = true }, "TABLE_OR_VIEW_NOT_FOUND", 1, [][3]string{
			serverOK, tokenOK, {"ok", "session", ""}, {"problem", "plan", "TABLE_OR_VIEW_NOT_FOUND"},
		}},
		"wrong": {func(*world) {}, "UNRESOLVED_COLUMN.WITH_SUGGESTION", 1, [][3]string{
			serverOK, tokenOK, {"ok", "session", ""}, {"problem", "plan", "UNRESOLVED_COLUMN"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, connecttest.Options{})
				w.source.Queries = []configs.Query{configured("a")}
				c.prepare(w)
				if c.refuse != "" {
					w.spark.FailNext(sparkpb.AnalyzePlanMethod, 2, nil) // the session is made, and the query is found to be a stream
					w.spark.FailNext(sparkpb.AnalyzePlanMethod, 1, w.spark.Error(c.refuse, "no"))
				}
				wantFindings(t, w.checked(), c.code, c.want...)
				if job, there := w.spark.Session("u", sessionID); there && len(job.Statements()) > 0 {
					t.Errorf("the check has run %q in the job's session", job.Statements())
				}
				if n := len(connecttest.CallsOf[*sparkpb.ReleaseSessionRequest](w.spark)); n != 1 {
					t.Errorf("%d sessions were closed, want the check's own", n)
				}
			})
		})
	}
}
