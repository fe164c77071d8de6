package connect

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"sparkbridge/connect/sparkpb"
)

// unsent is a session of which no test asks anything.
func unsent() *Session { return new(Session) }

func rateOf(s *Session) *DataFrame { return s.ReadStream().Format("rate").Load() }

const rateText = `read {is_streaming: true data_source {format: "rate"}}`

// Each step of a plan is what Spark's own clients send.
func TestPlans(t *testing.T) {
	s := unsent()
	for name, plan := range map[string]struct {
		frame *DataFrame
		want  string
	}{
		"source": {
			s.ReadStream().Format("kafka").Option("subscribe", "orders").Option("failOnDataLoss", false).
				Option("maxOffsetsPerTrigger", 1000).Option("ratio", 0.5).Options(map[string]string{"a": "b"}).Load(),
			`read {is_streaming: true data_source {format: "kafka"
				options {key: "subscribe" value: "orders"} options {key: "failOnDataLoss" value: "false"}
				options {key: "maxOffsetsPerTrigger" value: "1000"} options {key: "ratio" value: "0.5"} options {key: "a" value: "b"}}}`},
		"files": {
			s.ReadStream().Format("json").Schema("id INT, name STRING").Load("/a", "/b"),
			`read {is_streaming: true data_source {format: "json" schema: "id INT, name STRING" paths: "/a" paths: "/b"}}`},
		"default format": {s.ReadStream().Load(), `read {is_streaming: true data_source {}}`},
		"delta change feed": {
			s.ReadStream().Format("delta").Option("readChangeFeed", true).Option("startingVersion", 3).Table("orders"),
			`read {is_streaming: true named_table {unparsed_identifier: "orders"
				options {key: "readChangeFeed" value: "true"} options {key: "startingVersion" value: "3"}}}`},
		"delta sharing": {
			s.ReadStream().Format("deltaSharing").Option("startingVersion", 0).Option("skipChangeCommits", true).Load("profile#share.schema.table"),
			`read {is_streaming: true data_source {format: "deltaSharing" paths: "profile#share.schema.table"
				options {key: "startingVersion" value: "0"} options {key: "skipChangeCommits" value: "true"}}}`},
		"fluss": {
			s.ReadStream().Option("scan.startup.mode", "latest").Table("fluss.db.orders"),
			`read {is_streaming: true named_table {unparsed_identifier: "fluss.db.orders" options {key: "scan.startup.mode" value: "latest"}}}`},
		"table":  {s.Table("orders"), `read {named_table {unparsed_identifier: "orders"}}`},
		"select": {rateOf(s).Select("value", "value + 1 AS next"), `project {input {` + rateText + `} expressions {expression_string {expression: "value"}} expressions {expression_string {expression: "value + 1 AS next"}}}`},
		"where":  {rateOf(s).Where("value > 1"), `filter {input {` + rateText + `} condition {expression_string {expression: "value > 1"}}}`},
		"limit":  {rateOf(s).Limit(3), `limit {input {` + rateText + `} limit: 3}`},
		"watermark": {rateOf(s).WithWatermark("timestamp", "10 seconds"),
			`with_watermark {input {` + rateText + `} event_time: "timestamp" delay_threshold: "10 seconds"}`},
		"window": {rateOf(s).GroupBy("window(timestamp, '5 minutes')", "value").Agg("count(*) AS n"),
			`aggregate {input {` + rateText + `} group_type: GROUP_TYPE_GROUPBY
				grouping_expressions {expression_string {expression: "window(timestamp, '5 minutes')"}} grouping_expressions {expression_string {expression: "value"}}
				aggregate_expressions {expression_string {expression: "count(*) AS n"}}}`},
		"total": {rateOf(s).GroupBy().Agg("max(value)"),
			`aggregate {input {` + rateText + `} group_type: GROUP_TYPE_GROUPBY aggregate_expressions {expression_string {expression: "max(value)"}}}`},
		"distinct": {rateOf(s).DropDuplicates(), `deduplicate {input {` + rateText + `} all_columns_as_keys: true within_watermark: false}`},
		"distinct by columns": {rateOf(s).DropDuplicates("value", "timestamp"),
			`deduplicate {input {` + rateText + `} column_names: "value" column_names: "timestamp" within_watermark: false}`},
		"distinct within the watermark": {rateOf(s).DropDuplicatesWithinWatermark("value"),
			`deduplicate {input {` + rateText + `} column_names: "value" within_watermark: true}`},
		"observe": {rateOf(s).Observe("metrics", "count(*) AS rows", "max(value) AS max"),
			`collect_metrics {input {` + rateText + `} name: "metrics"
				metrics {expression_string {expression: "count(*) AS rows"}} metrics {expression_string {expression: "max(value) AS max"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if plan.frame.err != nil {
				t.Fatal(plan.frame.err)
			}
			same(t, unnumbered(plan.frame.relation), plan.want)
		})
	}
}

// Two relations of a session never have the same number.
func TestPlansAreNumbered(t *testing.T) {
	s := unsent()
	base := rateOf(s)
	seen := map[int64]bool{}
	for _, d := range []*DataFrame{base, base.Select("value"), base.Select("value"), rateOf(s), s.Table("t")} {
		id := d.relation.GetCommon().GetPlanId()
		if d.relation.GetCommon().PlanId == nil || seen[id] {
			t.Errorf("number %d twice, or none", id)
		}
		seen[id] = true
	}
}

func TestStarts(t *testing.T) {
	w := rateOf(unsent()).WriteStream()
	for name, start := range map[string]struct {
		writer *StreamWriter
		want   string
	}{
		"nothing said": {w, ``},
		"all said": {w.Format("parquet").Path("/out").Option("checkpointLocation", "/cp").Options(map[string]string{"compression": "zstd"}).
			PartitionBy("day", "hour").QueryName("orders").OutputMode(Append).Trigger(ProcessingTime(90 * time.Second)),
			`format: "parquet" path: "/out" options {key: "checkpointLocation" value: "/cp"} options {key: "compression" value: "zstd"}
				partitioning_column_names: "day" partitioning_column_names: "hour" query_name: "orders" output_mode: "append"
				processing_time_interval: "90000 milliseconds"`},
		"at once":       {w.Trigger(ProcessingTime(0)), `processing_time_interval: "0 milliseconds"`},
		"available now": {w.Trigger(AvailableNow()), `available_now: true`},
		"once":          {w.Trigger(Once()), `once: true`},
		"continuous":    {w.Trigger(Continuous(time.Second)), `continuous_checkpoint_interval: "1000 milliseconds"`},
		"default again": {w.Trigger(Once()).Trigger(Trigger{}), ``},
		"complete":      {w.OutputMode(Complete), `output_mode: "complete"`},
		"update":        {w.OutputMode(Update), `output_mode: "update"`},
	} {
		t.Run(name, func(t *testing.T) {
			command, err := start.writer.command()
			if err != nil {
				t.Fatal(err)
			}
			same(t, unnumbered(command), `input {`+rateText+`} `+start.want)
		})
	}
}

// What a frame, a reader or a writer was before, it still is after its methods were called.
func TestDescriptionsNeverChange(t *testing.T) {
	s := unsent()
	columns := []string{"value"}
	reader := s.ReadStream().Format("json").Option("a", 1)
	files := reader.Load("/in")
	grouped := files.GroupBy(columns...)
	distinct := files.DropDuplicates(columns...)
	writer := distinct.WriteStream().Format("noop").Option("b", 1).PartitionBy(columns...)
	before := []proto.Message{
		proto.Clone(files.relation), proto.Clone(distinct.relation), proto.Clone(mustCommand(t, writer)),
	}

	columns[0] = "changed"
	reader.Format("csv").Option("a", 2).Options(map[string]string{"x": "y"}).Schema("id INT").Load("/other")
	files.Select("x").Where("y").Limit(1).Observe("m", "count(*)")
	distinct.WithWatermark("t", "1 s").DropDuplicates()
	writer.Format("kafka").Option("b", 2).Options(map[string]string{"x": "y"}).PartitionBy("z").QueryName("q").OutputMode(Update).Trigger(Once()).Path("/p")
	_ = writer.Option("bad", struct{}{})

	for i, m := range []proto.Message{files.relation, distinct.relation, mustCommand(t, writer)} {
		if !proto.Equal(before[i], m) {
			t.Errorf("%d has changed: %v, was %v", i, m, before[i])
		}
	}
	if got := grouped.Agg("count(*)").relation.GetAggregate().GetGroupingExpressions()[0].GetExpressionString().GetExpression(); got != "value" {
		t.Errorf("grouped by %q", got)
	}
}

// A mistake is told by the method that goes to Spark, which does not go there.
func TestMistakesAreKept(t *testing.T) {
	s := unsent()
	writer := rateOf(s).WriteStream()
	start := func(w *StreamWriter) func() error {
		return func() error { _, err := w.Start(t.Context()); return err }
	}
	for name, try := range map[string]struct {
		do   func() error
		says []string
	}{
		"option of a source":    {start(s.ReadStream().Option("when", time.Second).Load().WriteStream()), []string{"option when", "time.Duration", "10s"}},
		"option of a sink":      {start(writer.Option("x", nil)), []string{"option x", "<nil>"}},
		"nameless option":       {start(writer.Option(" ", 1)), []string{"name of an option is empty"}},
		"first mistake":         {start(rateOf(s).Where("").Select("a").Limit(1).WriteStream()), []string{"condition of Where is empty"}},
		"two mistakes":          {start(rateOf(s).Where("").WriteStream().Trigger(Continuous(0))), []string{"condition of Where", "checkpoint interval of 0s"}},
		"negative trigger":      {start(writer.Trigger(ProcessingTime(-time.Second))), []string{"-1s"}},
		"no aggregate":          {start(rateOf(s).GroupBy("value").Agg().WriteStream()), []string{"count(*) AS n"}},
		"no metric":             {start(rateOf(s).Observe("m").WriteStream()), []string{"count(*) AS rows"}},
		"nameless metrics":      {start(rateOf(s).Observe("", "count(*)").WriteStream()), []string{"name of Observe is empty"}},
		"watermark":             {start(rateOf(s).WithWatermark("", "").WriteStream()), []string{"event time", "delay"}},
		"negative limit":        {start(rateOf(s).Limit(-1).WriteStream()), []string{"-1"}},
		"nameless source table": {start(s.ReadStream().Table("").WriteStream()), []string{"table is empty"}},
		"nameless table":        {func() error { _, err := writer.ToTable(t.Context(), ""); return err }, []string{"table is empty"}},
		"table with a path":     {func() error { _, err := writer.Path("/x").ToTable(t.Context(), "t"); return err }, []string{"Path"}},
		"nameless view":         {func() error { return rateOf(s).CreateTempView(t.Context(), "") }, []string{"view is empty"}},
		"view of a mistake":     {func() error { return s.Table("").CreateOrReplaceTempView(t.Context(), "v") }, []string{"table is empty"}},
		"analysis":              {func() error { _, err := s.Table("").Schema(t.Context()); return err }, []string{"table is empty"}},
		"rows of a mistake":     {func() error { _, err := s.Table("").Collect(t.Context()); return err }, []string{"table is empty"}},
		"too many rows":         {func() error { return s.Table("t").Show(t.Context(), nil, -3) }, []string{"-3"}},
		"empty SQL":             {func() error { _, err := s.SQL(t.Context(), " "); return err }, []string{"SQL is empty"}},
		"argument of SQL":       {func() error { _, err := s.SQL(t.Context(), "SELECT :x", Arg{"x", []int{1}}); return err }, []string{`"x"`, "[]int"}},
		"nil argument of SQL":   {func() error { _, err := s.SQL(t.Context(), "SELECT :x", Arg{"x", nil}); return err }, []string{`"x"`}},
		"nameless argument":     {func() error { _, err := s.SQL(t.Context(), "SELECT :x", Arg{"", 1}); return err }, []string{"name of an argument"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := try.do()
			if err == nil || slices.ContainsFunc(try.says, func(part string) bool { return !strings.Contains(err.Error(), part) }) {
				t.Errorf("got %v, want one that says %q", err, try.says)
			}
		})
	}
}

func TestArguments(t *testing.T) {
	type id int8
	values, err := literals([]Arg{{"s", "x"}, {"b", true}, {"i", 7}, {"u", uint16(9)}, {"n", id(-3)}, {"f", 0.5}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"s": `string: "x"`, "b": `boolean: true`, "i": `long: 7`, "u": `long: 9`, "n": `long: -3`, "f": `double: 0.5`,
	} {
		same(t, values[name], want)
	}
	for _, value := range []any{uint64(1 << 63), time.Second, time.Time{}, []byte("x"), struct{}{}, nil} {
		if got, err := literals([]Arg{{"u", value}}); err == nil {
			t.Errorf("argument %v of type %T was taken for %v", value, value, got)
		}
	}
}

func mustCommand(t *testing.T, w *StreamWriter) *sparkpb.WriteStreamOperationStart {
	t.Helper()
	command, err := w.command()
	if err != nil {
		t.Fatal(err)
	}
	return command
}

// unnumbered is a copy without the numbers of relations.
func unnumbered(m proto.Message) proto.Message {
	m = proto.Clone(m)
	var strip func(protoreflect.Message)
	strip = func(m protoreflect.Message) {
		if r, ok := m.Interface().(*sparkpb.Relation); ok {
			r.Common = nil
		}
		m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
			if field.Message() != nil && !field.IsMap() && !field.IsList() {
				strip(value.Message())
			}
			return true
		})
	}
	strip(m.ProtoReflect())
	return m
}

// same compares a message with one in protobuf's text form.
func same(t *testing.T, got proto.Message, text string) {
	t.Helper()
	want := got.ProtoReflect().New().Interface()
	if err := prototext.Unmarshal([]byte(text), want); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}
