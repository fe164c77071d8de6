//go:build integration

package integration

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"sparkbridge/connect"
)

// withQueries lets a source of its own make a session and start three queries in it: one over SQL
// with a window, one of files that its setup has made the table for, and one without a checkpoint.
func withQueries(t *testing.T, config settings) {
	t.Helper()
	data := folder(t, "data")
	source := config.source()
	delete(source, "attach")
	source["create_session"] = true
	source["conf"] = map[string]any{"spark.sql.shuffle.partitions": 2}
	source["setup"] = []any{"CREATE TABLE IF NOT EXISTS " + tableOf(config) + " (timestamp TIMESTAMP, value BIGINT) USING parquet LOCATION '" + filepath.Join(data, "table") + "'"}
	rate := map[string]any{"format": "rate", "options": map[string]any{"rowsPerSecond": 20}}
	source["queries"] = []any{
		map[string]any{
			"name": "windows", "trigger": "1 second", "output_mode": "update",
			"views": map[string]any{"raw": map[string]any{
				"format": "rate", "options": map[string]any{"rowsPerSecond": 20}, "watermark": map[string]any{"column": "timestamp", "delay": "10 seconds"},
			}},
			"sql":    "WITH even AS (SELECT * FROM raw WHERE value % 2 = 0)\nSELECT window(timestamp, '2 seconds') AS w, count(*) AS n FROM even GROUP BY 1; -- all",
			"output": map[string]any{"format": "memory"},
		},
		map[string]any{
			"name": "table", "trigger": "500ms", "views": map[string]any{"v": rate},
			"output": map[string]any{"table": tableOf(config), "checkpoint": filepath.Join(data, "checkpoints", "table")},
		},
		map[string]any{
			"name": "files", "trigger": "500ms", "views": map[string]any{"v": map[string]any{"format": "parquet", "path": filepath.Join(data, "table"), "schema": "timestamp TIMESTAMP, value BIGINT"}},
			"sql":    "SELECT value, date(timestamp) AS day FROM v",
			"output": map[string]any{"format": "parquet", "path": filepath.Join(data, "out"), "checkpoint": "file:" + filepath.Join(data, "checkpoints", "files"), "partition_by": []any{"day"}},
		},
	}
}

// tableOf is a table of the source's own, on a server that tests share.
func tableOf(config settings) string { return "t_" + config.source()["name"].(string) }

var configuredNames = []string{"files", "table", "windows"}

// The queries of the configuration run when the bus is up, and nothing of them is missed: the first
// event of each is Spark's own word of its start. They outlive the bridge, and the next one leaves
// them alone.
func TestConfiguredQueries(t *testing.T) {
	t.Parallel()
	const source = "configured"
	spark, nats := shared.spark42.get(t), shared.nats.get(t)
	sink := natsSink(t, "nats", nats.URL(), source)
	sink.open()
	id := uuid.NewString()
	config := configure(t, source, spark.Session(user, id), sink)
	withQueries(t, config)

	report := checkConnect(t, config, 0)
	if got := plansOf(report); !slices.Equal(got, []string{"ok windows", "ok table", "unknown files"}) { // setup will make its folder
		t.Errorf("the check has planned %v", got)
	}

	bridge := startBridge(t, source, config)
	for _, name := range configuredNames {
		sink.awaitCount(t, "progress of "+name, 3, func(a arrival) bool { return a.kind() == "progress" && a.attributes["sparkqueryname"] == name })
	}
	arrivals, _ := sink.all()
	for _, name := range configuredNames {
		first := slices.IndexFunc(arrivals, func(a arrival) bool { return a.attributes["sparkqueryname"] == name })
		if a := arrivals[first]; a.kind() != "started" || a.attributes["sparkorigin"] != "client" || a.attributes["sparkrunid"] == "" || a.id() != a.attributes["sparkrunid"]+":started" {
			t.Errorf("the first event of %s is %v", name, a.attributes)
		}
	}
	session := client(t, spark, id)
	if views, err := session.SQL(within(t, patience), "SHOW VIEWS LIKE 'sparkbridge_*'"); err != nil {
		t.Error(err)
	} else if left, err := views.Collect(within(t, patience)); err != nil || len(left) > 0 {
		t.Errorf("views are left in the session: %s, %v", left, err)
	}
	bridge.stop()

	before := activeRuns(t, session)
	if len(before) != 3 {
		t.Fatalf("without the bridge these run: %v", before)
	}
	lines, _ := bridge.said.all()
	requireNoError(t, bridge.Restart(t.Context()))
	for _, name := range configuredNames {
		bridge.await("that "+name+" is left alone", len(lines), isSaid("query runs already and is left alone", name))
	}
	if after := activeRuns(t, session); !slices.Equal(before, after) {
		t.Errorf("the next bridge has started queries that ran: %v before, %v after", before, after)
	}
	bridge.stop()
	for _, q := range mustActive(t, session) {
		requireNoError(t, q.Stop(within(t, patience)))
	}
}

// What Spark refuses is told with its reason, and keeps the others back no more than the source.
func TestAConfiguredQueryThatSparkRefuses(t *testing.T) {
	t.Parallel()
	const source = "refused"
	spark, nats := shared.spark42.get(t), shared.nats.get(t)
	sink := natsSink(t, "nats", nats.URL(), source)
	sink.open()
	id := uuid.NewString()
	config := configure(t, source, spark.Session(user, id), sink)
	rate := map[string]any{"v": map[string]any{"format": "rate"}}
	config.source()["create_session"] = true
	config.source()["queries"] = []any{
		map[string]any{"name": "mode", "views": rate, "sql": "SELECT count(*) FROM v", "output": map[string]any{"format": "memory"}},
		map[string]any{"name": "column", "views": rate, "sql": "SELECT nope\nFROM v", "output": map[string]any{"format": "memory"}},
		map[string]any{"name": "good", "views": rate, "output": map[string]any{"format": "noop"}, "trigger": "available_now"},
	}
	report := checkConnect(t, config, 1)
	if got := plansOf(report); !slices.Equal(got, []string{"ok mode", "problem column", "ok good"}) {
		t.Errorf("the check has planned %v", got)
	}
	bridge := startBridge(t, source, config)
	bridge.await("why mode was not started", 0, isSaid("query was not started; it is tried again in a new session, or when the bridge is started again", "UNSUPPORTED_OPERATION"))
	bridge.await("why column was not started", 0, isSaid("query was not started; it is tried again in a new session, or when the bridge is started again", "UNRESOLVED_COLUMN"))
	sink.awaitCount(t, "the end of good", 1, func(a arrival) bool { return a.kind() == "terminated" && a.attributes["sparkqueryname"] == "good" })
	bridge.stop()
}

// plansOf is what the check says of the queries to be started: state and name of each.
func plansOf(report preflight) (plans []string) {
	for _, f := range report.Sources[0].Findings {
		if f.About == "plan" {
			name, _, _ := strings.Cut(f.Text, ":")
			plans = append(plans, f.State+" "+name)
		}
	}
	return plans
}

func mustActive(t *testing.T, session *connect.Session) []*connect.StreamingQuery {
	t.Helper()
	active, err := session.Streams().Active(within(t, patience))
	requireNoError(t, err)
	return active
}

func activeRuns(t *testing.T, session *connect.Session) (runs []string) {
	t.Helper()
	for _, q := range mustActive(t, session) {
		runs = append(runs, q.Name()+" "+q.RunID())
	}
	slices.Sort(runs)
	return runs
}
