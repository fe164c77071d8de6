package connect

import (
	"errors"
	"testing"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

// A statement is run once, though its answer is lost.
func TestAStatementRunsOnce(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Cut: true}, connecttest.Fault{Late: true, Hang: true})
		const statement = "INSERT INTO t VALUES (1)"
		if _, err := w.s.SQL(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		if got := w.job.Statements(); len(got) != 1 || got[0] != statement {
			t.Errorf("statements %q", got)
		}
	})
}

// Spark 3.5 refuses SQL over a stream; there the query is described instead.
func TestSQLOverAStreamOfAnOldServer(t *testing.T) {
	inWorld(t, connecttest.Options{Version: connecttest.Spark35}, func(t *testing.T, w *world) {
		if err := rateOf(w.s).CreateTempView(t.Context(), "ticks"); err != nil {
			t.Fatal(err)
		}
		refusal := w.server.Error("ANALYSIS.STREAM", "Queries with streaming sources must be executed with writeStream.start();")
		w.job.Refuse(func(c *sparkpb.Command) error {
			if c.GetSqlCommand() != nil {
				return refusal
			}
			return nil
		})
		d, err := w.s.SQL(t.Context(), "SELECT * FROM ticks WHERE value > :least", Arg{"least", 1})
		if err != nil {
			t.Fatal(err)
		}
		same(t, unnumbered(d.relation), `sql {query: "SELECT * FROM ticks WHERE value > :least" args {key: "least" value {long: 1}}}`)
		var refused *Error
		if _, err := w.s.SQL(t.Context(), "SELECT * FROM orders"); !errors.As(err, &refused) || !refused.ofStream() {
			t.Errorf("SQL that reads no stream: %v", err)
		}
	})
}
