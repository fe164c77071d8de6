package queries

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sessionID = "5b0d2c1e-8f0a-4c53-9a58-7b1f0a4f3e11"

// watched is a session whose commands are kept, but for the questions.
type watched struct {
	*connect.Session
	server   *connecttest.Server
	commands []*sparkpb.Command
	refuse   func(*sparkpb.Command) error
}

func watch(t *testing.T) *watched {
	t.Helper()
	server := connecttest.Start(t, connecttest.Options{})
	fake, err := server.CreateSession("u", sessionID)
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{server: server, refuse: func(*sparkpb.Command) error { return nil }}
	fake.Refuse(func(c *sparkpb.Command) error {
		w.commands = append(w.commands, c)
		return w.refuse(c)
	})
	remote, err := connect.ParseRemote("sc://" + server.Addr() + "/;user_id=u;session_id=" + sessionID)
	if err != nil {
		t.Fatal(err)
	}
	client := connect.NewClient(connect.ClientOptions{Dial: []grpc.DialOption{grpc.WithContextDialer(server.Dialer)}})
	if w.Session, err = client.Attach(t.Context(), remote); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func orders() *configs.Query {
	return &configs.Query{
		Name: "orders",
		Views: map[string]configs.View{
			"raw": {
				Format: "kafka", Options: map[string]configs.Setting{"subscribe": "o"},
				Watermark: configs.Watermark{Column: "ts", Delay: "10 minutes"},
			},
			"prices": {Table: "sales.prices", Options: map[string]configs.Setting{"readChangeFeed": "true"}},
		},
		SQL: "SELECT *\nFROM raw JOIN prices -- all;\n",
		Output: configs.Output{
			Format: "parquet", Path: "/out", Checkpoint: "/c", PartitionBy: []string{"day"}, Options: map[string]configs.Setting{"compression": "zstd"},
		},
		OutputMode: connect.Append, Trigger: "10s",
	}
}

func TestAQueryOverViews(t *testing.T) {
	w := watch(t)
	q, err := Start(t.Context(), w.Session, orders())
	if err != nil || q.Name() != "orders" {
		t.Fatalf("started %v: %v", q, err)
	}
	if len(w.commands) != 6 {
		t.Fatalf("%d commands, want two views, SQL, a start and two views dropped: %v", len(w.commands), w.commands)
	}
	prices, raw := w.commands[0].GetCreateDataframeView(), w.commands[1].GetCreateDataframeView()
	prefix := strings.TrimSuffix(prices.GetName(), "prices")
	if raw.GetName() != prefix+"raw" || !strings.HasPrefix(prefix, "sparkbridge_") || raw.GetReplace() || prices.GetReplace() {
		t.Errorf("the views are %v and %v", prices, raw)
	}
	if r := prices.GetInput().GetRead(); !r.GetIsStreaming() || r.GetNamedTable().GetUnparsedIdentifier() != "sales.prices" || r.GetNamedTable().GetOptions()["readChangeFeed"] != "true" {
		t.Errorf("prices reads %v", r)
	}
	mark := raw.GetInput().GetWithWatermark()
	if r := mark.GetInput().GetRead(); mark.GetEventTime() != "ts" || mark.GetDelayThreshold() != "600000 milliseconds" || !r.GetIsStreaming() || r.GetDataSource().GetFormat() != "kafka" || r.GetDataSource().GetOptions()["subscribe"] != "o" {
		t.Errorf("raw reads %v", mark)
	}
	want := "WITH prices AS (SELECT * FROM " + prefix + "prices), raw AS (SELECT * FROM " + prefix + "raw)(SELECT *\nFROM raw JOIN prices -- all;\n\n)"
	if got := w.commands[2].GetSqlCommand().GetSql(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	start := w.commands[3].GetWriteStreamOperationStart()
	if start.GetQueryName() != "orders" || start.GetFormat() != "parquet" || start.GetPath() != "/out" || start.GetOutputMode() != "append" ||
		start.GetOptions()["checkpointLocation"] != "/c" || start.GetOptions()["compression"] != "zstd" ||
		len(start.GetPartitioningColumnNames()) != 1 || start.GetProcessingTimeInterval() != "10000 milliseconds" || start.GetInput().GetSql() == nil {
		t.Errorf("started %v", start)
	}
	for i, view := range []string{"prices", "raw"} {
		if got := w.commands[4+i].GetSqlCommand().GetSql(); got != "DROP VIEW IF EXISTS "+prefix+view {
			t.Errorf("after the start came %q", got)
		}
	}
}

// One view that is written as it is needs no name in the session.
func TestAQueryWithoutSQL(t *testing.T) {
	w := watch(t)
	q := orders()
	q.SQL = ""
	delete(q.Views, "raw")
	q.Output = configs.Output{Table: "t", Format: "delta", Checkpoint: "/c"}
	if _, err := Start(t.Context(), w.Session, q); err != nil {
		t.Fatal(err)
	}
	if len(w.commands) != 1 {
		t.Fatalf("%d commands, want a start alone: %v", len(w.commands), w.commands)
	}
	start := w.commands[0].GetWriteStreamOperationStart()
	if start.GetTableName() != "t" || start.GetFormat() != "delta" || start.GetInput().GetRead().GetNamedTable().GetUnparsedIdentifier() != "sales.prices" {
		t.Errorf("started %v", start)
	}
}

// A view that was made for a query that could not be started is taken away too.
func TestARefusedStartLeavesNothing(t *testing.T) {
	w := watch(t)
	refusal := w.server.Error("STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION", "Invalid streaming output mode")
	w.refuse = func(c *sparkpb.Command) error {
		if c.GetWriteStreamOperationStart() != nil {
			return refusal
		}
		return nil
	}
	var e *connect.Error
	if _, err := Start(t.Context(), w.Session, orders()); !errors.As(err, &e) || e.Class != "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION" {
		t.Fatalf("got error %v, want Spark's own", err)
	}
	dropped := 0
	for _, c := range w.commands {
		if strings.HasPrefix(c.GetSqlCommand().GetSql(), "DROP VIEW") {
			dropped++
		}
	}
	if dropped != 2 {
		t.Errorf("%d views were dropped: %v", dropped, w.commands)
	}
}

// What ends a statement has no place in brackets; what a text or a comment holds is left alone.
func TestSemicolonsBehindAQuery(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT 1":                         "SELECT 1",
		"SELECT 1;":                        "SELECT 1 ",
		"SELECT 1 ; ;\n":                   "SELECT 1    \n",
		"SELECT 1; -- all;":                "SELECT 1  -- all;",
		"SELECT 1; /* ; */ ;":              "SELECT 1  /* ; */  ",
		"SELECT ';' -- it's;\n;":           "SELECT ';' -- it's;\n ",
		`SELECT 'a\';' , "b;", ` + "`c;`;": `SELECT 'a\';' , "b;", ` + "`c;` ",
		"SELECT 1; SELECT 2":               "SELECT 1; SELECT 2", // which Spark refuses
		"SELECT 'a;":                       "SELECT 'a;",
		"/* ;":                             "/* ;",
		"SELECT 'a' /* x */ ;--":           "SELECT 'a' /* x */  --",
	} {
		if got := unended(sql); got != want {
			t.Errorf("%q becomes %q, want %q", sql, got, want)
		}
	}
	if got := over("p_", nil, "SELECT 1;"); got != "(SELECT 1 \n)" {
		t.Errorf("without views: %q", got)
	}
}

// A plan starts nothing, and refuses what is no stream.
func TestPlan(t *testing.T) {
	w := watch(t)
	if _, err := Plan(t.Context(), w.Session, orders()); err != nil {
		t.Errorf("a right query: %v", err)
	}
	bounded := orders()
	bounded.Views, bounded.SQL = nil, "SELECT * FROM orders"
	if _, err := Plan(t.Context(), w.Session, bounded); !errors.Is(err, errBounded) {
		t.Errorf("of a query that reads no stream: %v", err)
	}
	for _, c := range w.commands {
		if c.GetWriteStreamOperationStart() != nil {
			t.Errorf("a plan has started %v", c)
		}
	}
}

// Settings come first, then statements in their order; the first that is refused is named.
func TestPrepare(t *testing.T) {
	w := watch(t)
	conf := map[string]configs.Setting{"a": "1", "b": "2"}
	if err := Prepare(t.Context(), w.Session, conf, []configs.SparkText{"CREATE TABLE a", "CREATE TABLE b"}); err != nil {
		t.Fatal(err)
	}
	settings, err := w.Conf().All(t.Context())
	if err != nil || settings["a"] != "1" || settings["b"] != "2" {
		t.Errorf("settings are %v: %v", settings, err)
	}
	if len(w.commands) != 2 || w.commands[0].GetSqlCommand().GetSql() != "CREATE TABLE a" || w.commands[1].GetSqlCommand().GetSql() != "CREATE TABLE b" {
		t.Errorf("ran %v", w.commands)
	}
	refusal := w.server.Error("PARSE_SYNTAX_ERROR", "Syntax error")
	w.refuse = func(*sparkpb.Command) error { return refusal }
	if err := Prepare(t.Context(), w.Session, conf, []configs.SparkText{"CREATE TABLE c", "CREATE TABLE d"}); err == nil || !strings.HasPrefix(err.Error(), "setup[0]: ") || len(w.commands) != 3 {
		t.Errorf("%d commands and error %v, want none after the one that is refused", len(w.commands), err)
	}
}
