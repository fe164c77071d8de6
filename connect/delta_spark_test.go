//go:build integration

package connect

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"sparkbridge/integration/servers"
)

// The change feed of a Delta table, a slice of it and then the rest.
func TestChangeFeedOfDelta(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	spark, err := servers.StartSpark(ctx, servers.SparkOptions{Dir: t.TempDir(), Delta: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := spark.Stop(); err != nil {
			t.Errorf("stop Spark: %v", err)
		}
	})
	s := (&real{spark, NewClient(ClientOptions{})}).open(t)
	for _, statement := range []string{
		"CREATE TABLE orders (id INT, state STRING) USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)",
		"INSERT INTO orders VALUES (1, 'new'), (2, 'new')",
		"UPDATE orders SET state = 'paid' WHERE id = 1",
		"DELETE FROM orders WHERE id = 2",
	} {
		if _, err := s.SQL(ctx, statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	dir := t.TempDir()
	changes := s.ReadStream().Format("delta").Option("readChangeFeed", true).Option("startingVersion", 2).Table("orders").
		Select("_change_type AS change", "_commit_version AS version", "id", "state")
	drain := func() {
		t.Helper()
		q, err := changes.WriteStream().Format("delta").Option("checkpointLocation", filepath.Join(dir, "checkpoint")).
			Trigger(AvailableNow()).ToTable(ctx, "changes")
		if err != nil {
			t.Fatal(err)
		}
		if err := q.AwaitTermination(ctx); err != nil {
			t.Fatal(err)
		}
	}
	drain()
	if _, err := s.SQL(ctx, "INSERT INTO orders VALUES (3, 'new')"); err != nil {
		t.Fatal(err)
	}
	drain()
	df, err := s.SQL(ctx, "SELECT * FROM changes ORDER BY version, change")
	if got, want := collect(t, df, err), []string{
		`{"change":"update_postimage","version":2,"id":1,"state":"paid"}`,
		`{"change":"update_preimage","version":2,"id":1,"state":"new"}`,
		`{"change":"delete","version":3,"id":2,"state":"new"}`,
		`{"change":"insert","version":4,"id":3,"state":"new"}`,
	}; !slices.Equal(got, want) {
		t.Errorf("changes\n got %q\nwant %q", got, want)
	}
}
