//go:build integration

package queries

import (
	"context"
	"strings"
	"testing"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/integration/servers"
)

// SQL over views works on every Spark, with a window over a watermark in it and with a WITH of
// its own, and leaves no view behind.
func TestSQLOverViewsOnRealServers(t *testing.T) {
	for _, version := range []string{"4.2", "4.0", "3.5"} {
		t.Run(version, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			server, err := servers.StartSpark(ctx, servers.SparkOptions{Version: version, Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := server.Stop(); err != nil {
					t.Error(err)
				}
			}()
			session, err := connect.Open(ctx, server.Remote())
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			overViews(ctx, t, session)
		})
	}
}

func overViews(ctx context.Context, t *testing.T, session *connect.Session) {
	t.Helper()
	rate := configs.View{Format: "rate", Options: map[string]configs.Setting{"rowsPerSecond": "50"}, Watermark: configs.Watermark{Column: "timestamp", Delay: "1 second"}}
	query := &configs.Query{
		Name: "joined", Views: map[string]configs.View{"a": rate, "b": rate}, OutputMode: connect.Append, Trigger: "500ms", Output: configs.Output{Format: "memory"},
		SQL: "WITH even AS (SELECT * FROM a WHERE value % 2 = 0)\nSELECT even.value FROM even JOIN b ON even.value = b.value AND even.timestamp BETWEEN b.timestamp - INTERVAL 5 SECONDS AND b.timestamp + INTERVAL 5 SECONDS; -- all",
	}
	windows := &configs.Query{
		Name: "windows", Views: map[string]configs.View{"a": rate}, OutputMode: connect.Update, Trigger: "500ms", Output: configs.Output{Format: "memory"},
		SQL: "SELECT window(timestamp, '2 seconds') AS w, count(*) AS n FROM a GROUP BY 1",
	}
	if _, err := session.SQL(ctx, "CREATE OR REPLACE TEMP VIEW a AS SELECT 'the job’s own' AS a"); err != nil {
		t.Fatal(err)
	}
	for _, q := range []*configs.Query{query, windows} {
		if columns, err := Plan(ctx, session, q); err != nil || !strings.HasPrefix(columns, "root\n") {
			t.Errorf("plan of %s: %q, %v", q.Name, columns, err)
		}
		started, err := Start(ctx, session, q)
		if err != nil {
			t.Fatal(err)
		}
		for rows := 0; rows == 0; {
			got, err := session.Table(q.Name).Limit(1).Collect(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if failed, err := started.Exception(ctx); err != nil || failed != nil {
				t.Fatalf("%s has failed: %v, %v", q.Name, failed, err)
			}
			rows = len(got)
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
				t.Fatalf("%s writes nothing", q.Name)
			}
		}
		if err := started.Stop(ctx); err != nil {
			t.Error(err)
		}
	}
	bounded := &configs.Query{Name: "bounded", SQL: "SELECT * FROM a", Output: configs.Output{Format: "memory"}}
	if _, err := Plan(ctx, session, bounded); err == nil || !strings.Contains(err.Error(), "no stream") {
		t.Errorf("plan of what is no stream: %v", err)
	}
	statement := &configs.Query{Name: "statement", SQL: "DROP VIEW a", Output: configs.Output{Format: "memory"}}
	if _, err := Plan(ctx, session, statement); err == nil {
		t.Error("a statement was taken for a query")
	}
	views, err := session.SQL(ctx, "SHOW VIEWS")
	if err != nil {
		t.Fatal(err)
	}
	left, err := views.Collect(ctx)
	if err != nil || len(left) == 0 || strings.Contains(string(left[0]), "sparkbridge_") || len(left) > 3 {
		t.Errorf("the views are %s, %v", left, err)
	}
}
