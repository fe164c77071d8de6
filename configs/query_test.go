package configs

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// withQueries is a right configuration whose source has more keys.
func withQueries(keys string) string {
	return "sources:\n- name: a\n  remote: sc://h/;user_id=u;session_id=" + sessionA + "\n" + keys + "sinks:\n- name: s\n  nats: {url: nats://h}\n"
}

func TestAQueryWithEveryKey(t *testing.T) {
	cfg := parse(t, withQueries(`  conf: {spark.sql.shuffle.partitions: 8, spark.sql.ansi.enabled: true, a: text}
  setup: ["CREATE TABLE IF NOT EXISTS t (id INT)"]
  queries:
  - name: orders
    views:
      raw: {format: kafka, options: {subscribe: orders, maxOffsetsPerTrigger: 1000, failOnDataLoss: false}, watermark: {column: ts, delay: 10 minutes}}
      files: {format: json, path: /in, schema: id INT}
      added: {table: sales.orders, options: {readChangeFeed: true}}
    sql: SELECT 1
    output: {format: parquet, path: /out, checkpoint: /c, options: {compression: zstd}, partition_by: [day]}
    output_mode: update
    trigger: 1 minute 30 seconds
`))
	s := cfg.Sources[0]
	want := Query{
		Name: "orders",
		Views: map[string]View{
			"raw": {
				Format: "kafka", Watermark: Watermark{Column: "ts", Delay: "10 minutes"},
				Options: map[string]Setting{"subscribe": "orders", "maxOffsetsPerTrigger": "1000", "failOnDataLoss": "false"},
			},
			"files": {Format: "json", Path: "/in", Schema: "id INT"},
			"added": {Table: "sales.orders", Options: map[string]Setting{"readChangeFeed": "true"}},
		},
		SQL: "SELECT 1",
		Output: Output{
			Format: "parquet", Path: "/out", Checkpoint: "/c", Options: map[string]Setting{"compression": "zstd"}, PartitionBy: []string{"day"},
		},
		OutputMode: "update", Trigger: "1 minute 30 seconds",
	}
	if len(s.Queries) != 1 || !reflect.DeepEqual(s.Queries[0], want) {
		t.Errorf("got  %+v\nwant %+v", s.Queries, want)
	}
	if !reflect.DeepEqual(s.Conf, map[string]Setting{"spark.sql.shuffle.partitions": "8", "spark.sql.ansi.enabled": "true", "a": "text"}) {
		t.Errorf("conf is %v", s.Conf)
	}
	if len(s.Setup) != 1 || s.Setup[0] != "CREATE TABLE IF NOT EXISTS t (id INT)" {
		t.Errorf("setup is %q", s.Setup)
	}
	if got := s.Queries[0].Views["raw"].Watermark.Delay.Spark(); got != "600000 milliseconds" {
		t.Errorf("the delay for Spark is %q", got)
	}
}

// What the example shows of queries behind # is right too.
func TestTheExampleOfQueries(t *testing.T) {
	text, err := os.ReadFile("bridge.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "    # conf: ")
	part, _, end := strings.Cut(part, "# Every event is written to disk")
	if !found || !end {
		t.Fatal("the example has no queries")
	}
	prose := regexp.MustCompile(`(?m)^    # {5,}# .*\n`)
	part = prose.ReplaceAllString("    # conf: "+part, "")
	part = strings.ReplaceAll(strings.ReplaceAll(part, "    # ", "    "), "    #\n", "")
	cfg := parse(t, strings.Replace(good, "sinks:", part+"sinks:", 1))
	if q := cfg.Sources[0].Queries; len(q) != 1 || q[0].Output.Checkpoint == "" || q[0].Trigger == "" || q[0].Views["raw"].Watermark.Column == "" {
		t.Errorf("the example is not what it shows: %+v\n%s", q, part)
	}
}

func TestTriggers(t *testing.T) {
	for text, right := range map[string]bool{
		"10s": true, "10 seconds": true, "1m30s": true, "0s": true, "once": true, "available_now": true, "available-now": true, "continuous 1s": true,
		"continuous 10 seconds": true, "": false, "10": false, "continuous": false, "continuous 0s": false, "continuous often": false, "now": false, "-1s": false,
	} {
		var trigger Trigger
		if err := trigger.UnmarshalText([]byte(text)); (err == nil) != right {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Each slip in a query is told once, before anything is started, at its place and with the
// next step.
func TestProblemsOfQueries(t *testing.T) {
	queries := func(text string) string { return withQueries("  queries:\n" + text) }
	const (
		views  = "    views: {v: {format: rate}}\n"
		memory = "    output: {format: memory}\n"
	)
	for name, c := range map[string]struct {
		text string
		want string // lines
	}{
		"unknown formats pass": {queries("  - name: q\n    views: {v: {format: com.example.New, options: {a: 1}}}\n    output: {format: org.example.Sink, checkpoint: /c}\n"), ""},
		"no checkpoint needed": {queries("  - name: a\n" + views + memory + "  - name: b\n" + views + "    output: {format: Console}\n  - name: c\n" + views + "    output: {format: noop}\n"), ""},
		"no name":              {queries("  - views: {v: {format: rate}}\n" + memory), "f:5:5: sources[0].queries[0].name: is required: write for example name: orders"},
		"same name":            {queries("  - name: q\n" + views + memory + "  - name: q\n" + views + memory), `f:8:11: sources[0].queries[1].name: "q" is the name of sources[0].queries[0] too: give each its own`},
		"no output":            {queries("  - name: q\n" + views), "f:5:5: sources[0].queries[0].output: is required: write for example output: {format: parquet, path: /data/orders, checkpoint: /data/checkpoints/orders}"},
		"no format":            {queries("  - name: q\n" + views + "    output: {path: /x, checkpoint: /c}\n"), "f:7:13: sources[0].queries[0].output: has neither format nor table: name what it writes, such as format: parquet"},
		"path of a table":      {queries("  - name: q\n" + views + "    output: {table: t, path: /x, checkpoint: /c}\n"), `f:7:30: sources[0].queries[0].output.path: the table "t" has a place of its own: drop one of path and table`},
		"no checkpoint":        {queries("  - name: q\n" + views + "    output: {format: parquet, path: /x}\n"), "f:7:13: sources[0].queries[0].output.checkpoint: is missing: name a folder of its own, where Spark notes how far the query is; without one it could not go on after a restart"},
		"none for a table":     {queries("  - name: q\n" + views + "    output: {table: t, format: memory}\n"), "f:7:13: sources[0].queries[0].output.checkpoint: is missing: name a folder of its own, where Spark notes how far the query is; without one it could not go on after a restart"},
		"misspelt checkpoint":  {queries("  - name: q\n" + views + "    output: {format: parquet, checkpont: /x}\n"), "f:7:31: sources[0].queries[0].output.checkpont: is an unknown key: did you mean checkpoint?"},
		"checkpoint of conf":   {withQueries("  conf: {spark.sql.streaming.checkpointLocation: /c/}\n  queries:\n  - name: q\n" + views + "    output: {format: parquet, path: /x}\n"), ""},
		"checkpoint twice":     {queries("  - name: q\n" + views + "    output: {format: parquet, checkpoint: /c, options: {checkpointlocation: /d}}\n"), "f:7:43: sources[0].queries[0].output.checkpoint: the option checkpointLocation is given too: keep one of them"},
		"same checkpoint": {queries("  - name: q\n" + views + "    output: {format: parquet, checkpoint: /c/q}\n  - name: r\n" + views + "    output: {format: parquet, options: {checkpointLocation: 'file:///c/../c//q/'}}\n"),
			`f:10:13: sources[0].queries[1].output.checkpoint: "file:///c/../c//q/" is the checkpoint of sources[0].queries[0] too: give each its own, or Spark stops the query that was started first, without a word`},
		"same by default": {withQueries("  conf: {spark.sql.streaming.checkpointLocation: s3a://b/c}\n  queries:\n  - name: q\n" + views + "    output: {format: parquet}\n" +
			"  - name: r\n" + views + "    output: {format: parquet, checkpoint: 's3a://b/c/q/'}\n"),
			`f:11:43: sources[0].queries[1].output.checkpoint: "s3a://b/c/q/" is the checkpoint of sources[0].queries[0] too: give each its own, or Spark stops the query that was started first, without a word`},

		"nothing to read":   {queries("  - name: q\n" + memory), "f:5:5: sources[0].queries[0]: has neither views nor sql: say in views what it reads"},
		"sql alone":         {queries("  - name: q\n    sql: SELECT * FROM STREAM t\n" + memory), ""},
		"several, no sql":   {queries("  - name: q\n    views: {a: {format: rate}, b: {format: rate}}\n" + memory), "f:5:5: sources[0].queries[0].sql: is missing: with 2 views it has to say what is written"},
		"name of a view":    {queries("  - name: q\n    views: {a-b: {format: rate}}\n" + memory), "f:6:18: sources[0].queries[0].views.a-b: has a name that SQL would need quotes for: use letters, digits and _, no digit first"},
		"empty view":        {queries("  - name: q\n    views: {v: {options: {a: b}}}\n" + memory), "f:6:16: sources[0].queries[0].views.v: has neither format nor table: name what it reads, such as format: kafka"},
		"format of a table": {queries("  - name: q\n    views: {v: {table: t, format: rate}}\n" + memory), `f:6:35: sources[0].queries[0].views.v.format: is what the table "t" has itself: drop one of format and table`},
		"path twice":        {queries("  - name: q\n    views: {v: {format: json, path: /a, options: {path: /b}}}\n" + memory), "f:6:37: sources[0].queries[0].views.v.path: the option path is given too: keep one of them"},
		"half a watermark":  {queries("  - name: q\n    views: {v: {format: rate, watermark: {column: ts}}}\n" + memory), "f:6:42: sources[0].queries[0].views.v.watermark.delay: is missing: write for example delay: 10 minutes"},
		"no delay":          {queries("  - name: q\n    views: {v: {format: rate, watermark: {column: ts, delay: often}}}\n" + memory), `f:6:62: sources[0].queries[0].views.v.watermark.delay: "often" is no duration: write it as 10s or 1m30s, or as 10 seconds`},
		"unknown key":       {queries("  - name: q\n    views: {v: {fromat: rate}}\n" + memory), "f:6:17: sources[0].queries[0].views.v.fromat: is an unknown key: did you mean format?"},

		"trigger":            {queries("  - name: q\n    trigger: soon\n" + views + memory), `f:6:14: sources[0].queries[0].trigger: "soon" is no trigger: write a duration such as 10s or 10 seconds, once, available_now, or continuous 1s`},
		"continuous nothing": {queries("  - name: q\n    trigger: continuous 0s\n" + views + memory), `f:6:14: sources[0].queries[0].trigger: "continuous 0s" notes the position all the time: write a longer duration, such as continuous 1s`},
		"mode":               {queries("  - name: q\n    output_mode: all\n" + views + memory), `f:6:18: sources[0].queries[0].output_mode: "all" is not known: use append or complete or update`},
		"conf for nothing":   {withQueries("  conf: {a: b}\n"), "f:4:9: sources[0].conf: prepares the session for queries, and there are none: add queries, or drop it"},
		"setup for nothing":  {withQueries("  setup: [SELECT 1]\n"), "f:4:10: sources[0].setup: prepares the session for queries, and there are none: add queries, or drop it"},
		"empty statement":    {withQueries("  setup: ['']\n  queries:\n  - name: q\n" + views + memory), "f:4:11: sources[0].setup[0]: is empty: write an SQL statement, or drop it"},
		"list for an option": {queries("  - name: q\n    views: {v: {format: kafka, options: {subscribe: [a, b]}}}\n" + memory), "f:6:53: sources[0].queries[0].views.v.options.subscribe: wants a text, a number, true or false, not a list"},
		"text for options":   {queries("  - name: q\n    views: {v: {format: kafka, options: password=hunter2}}\n" + memory), "f:6:41: sources[0].queries[0].views.v.options: wants a mapping (lines of key: value), not the text"},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			if c.want != "" {
				want = strings.Split(c.want, "\n")
			}
			same(t, problemsOf(t, c.text, environment(nil, nil)), want)
		})
	}
}

// A checkpoint belongs to one query of the whole configuration, a name to one of a source.
func TestCheckpointsOfTwoSources(t *testing.T) {
	source := func(name, session, checkpoint string) string {
		return "- name: " + name + "\n  remote: sc://h/;user_id=u;session_id=" + session + "\n  conf: {spark.sql.streaming.checkpointLocation: " + checkpoint + "}\n" +
			"  queries: [{name: q, views: {v: {format: rate}}, output: {format: parquet, path: /x}}]\n"
	}
	text := func(other string) string {
		return "sources:\n" + source("a", sessionA, "/c") + source("b", sessionB, other) + "sinks:\n- name: s\n  nats: {url: nats://h}\n"
	}
	same(t, problemsOf(t, text("/d"), environment(nil, nil)), nil)
	same(t, problemsOf(t, text("file:/c/"), environment(nil, nil)), []string{
		`f:9:59: sources[1].queries[0].output.checkpoint: "file:/c/q" (by spark.sql.streaming.checkpointLocation and its name) is the checkpoint of sources[0].queries[0] too: give each its own, or Spark stops the query that was started first, without a word`,
	})
}

// What options and statements hold of credentials is not shown.
func TestQueriesAreShownWithoutSecrets(t *testing.T) {
	cfg := parse(t, withQueries(`  conf: {spark.hadoop.fs.s3a.access.key: hunter2, spark.sql.shuffle.partitions: 8}
  setup: ["CREATE TABLE t USING jdbc OPTIONS (url 'jdbc:x://h/d', password 'hunter2', \"dbtable\" 't', \"my.api.key\"= 'hunter2')"]
  queries:
  - name: q
    views:
      raw:
        format: kafka
        options:
          subscribe: orders
          kafka.sasl.jaas.config: x required username="u" password="hunter2";
          kafka.ssl.key.password: hunter2
          kafka.ssl.keystore.key: hunter2
          apiToken: hunter2
          url: jdbc:mysql://u:hunter2@h/d
    sql: SELECT a/b, 'x' FROM raw WHERE password = 'hunter2'
    output: {format: parquet, path: "s3a://u:hunter2@bucket/orders", checkpoint: "s3a://bucket/c/q", options: {client_secret: hunter2}}
`))
	inYAML, err := yaml.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	inJSON, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if text := string(inYAML) + string(inJSON); strings.Contains(text, "hunter2") {
		t.Errorf("a secret is shown:\n%s", text)
	}
	for _, shown := range []string{"subscribe: orders", "SELECT a/b, 'x' FROM raw", "checkpoint: s3a://bucket/c/q", `spark.sql.shuffle.partitions: "8"`, "CREATE TABLE t USING jdbc", "dbtable"} {
		if !strings.Contains(string(inYAML), shown) {
			t.Errorf("%s is not shown:\n%s", shown, inYAML)
		}
	}
}
