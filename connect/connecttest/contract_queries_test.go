package connecttest_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

// The part of the contract about what a client may do in a session of its own.

func startsTold(t *testing.T, w world) {
	c := w.client(t, goodToken)
	first := c.start(rate("first", ""))
	if first.GetQueryId().GetId() == "" || first.GetQueryId().GetRunId() == "" || first.GetName() != "first" || first.QueryStartedEventJson != nil {
		t.Errorf("start without a bus: %v, want ids, the name and no event", first)
	}
	c.open()
	for _, name := range []string{"second", ""} {
		second := c.start(rate(name, ""))
		event := keys(second.GetQueryStartedEventJson())
		want := []string{"id", "name", "runId", "timestamp"}
		if w.version() == connecttest.Spark42 {
			want = slices.Sorted(slices.Values(append(want, "jobTags")))
		}
		if got := slices.Sorted(maps.Keys(event)); !slices.Equal(got, want) || event["runId"] != second.GetQueryId().GetRunId() {
			t.Errorf("event of start %q: %s, want fields %v", name, second.GetQueryStartedEventJson(), want)
		}
		if told, named := event["name"].(string); named != (name != "") || told != name {
			t.Errorf("event of start %q has the name %v", name, event["name"])
		}
	}
	if active := c.active(); len(active) != 3 {
		t.Errorf("active queries: %v, want three", active)
	}
}

func lostStart(t *testing.T, w world) {
	c := w.client(t, goodToken)
	operation, command := uuid.NewString(), rate("once", "")
	first, err := c.performAs(operation, command)
	expect(t, "start", err, "")
	again, err := drain(c.execute(t.Context(), operation, command))
	expect(t, "the same start again", err, "")
	if !proto.Equal(started(first), started(again)) || started(again) == nil {
		t.Errorf("the same start again answers %v, want %v", started(again), started(first))
	}
	if active := c.active(); len(active) != 1 {
		t.Errorf("active queries: %v, want one", active)
	}
}

func refusedStart(t *testing.T, w world) {
	c := w.client(t, goodToken)
	c.start(rate("taken", ""))
	const text = "Cannot start query with name taken as a query with that name is already active in this SparkSession"
	operation, command := uuid.NewString(), rate("taken", "")
	for _, what := range []string{"start under a name that is taken", "the same start again"} {
		_, err := drain(c.execute(t.Context(), operation, command))
		if st := status.Convert(err); st.Code() != codes.Internal || !strings.Contains(st.Message(), text) || class(err) != "" {
			t.Errorf("%s: %v (class %q), want %q", what, err, class(err), text)
		}
	}
}

func sameCheckpoint(t *testing.T, w world) {
	c := w.client(t, goodToken)
	checkpoint := filepath.Join(t.TempDir(), "checkpoint")
	first := c.start(rate("first", checkpoint)).GetQueryId()
	second := c.start(rate("second", checkpoint)).GetQueryId()
	if second.GetId() != first.GetId() || second.GetRunId() == first.GetRunId() {
		t.Errorf("second run of a checkpoint is %v, the first was %v", second, first)
	}
	other := w.client(t, goodToken)
	third := other.start(rate("third", checkpoint)).GetQueryId()
	if third.GetId() != first.GetId() {
		t.Errorf("run of a checkpoint in another session is %v, the first was %v", third, first)
	}
	eventually(t, "the runs before the last one are stopped", func() bool { return len(c.active()) == 0 && len(other.active()) == 1 })
}

func awaits(t *testing.T, w world) {
	c := w.client(t, goodToken)
	run := c.start(rate("awaited", "")).GetQueryId()
	if _, err := c.await(run, 0); status.Code(err) != codes.Internal {
		t.Errorf("await for no time: %v, want INTERNAL", err)
	}
	if terminated, err := c.awaitAny(0); terminated || err != nil {
		t.Errorf("await any for no time: %v, %v", terminated, err)
	}
	// Longer than a stream lasts.
	over := 2*streamDuration.Milliseconds() - 1000
	if terminated, err := c.await(run, over); terminated || err != nil {
		t.Errorf("await a run that runs: %v, %v", terminated, err)
	}
	if terminated, err := c.awaitAny(100); terminated || err != nil {
		t.Errorf("await any while all run: %v, %v", terminated, err)
	}
	c.stop(run)
	c.stop(run)
	if terminated, err := c.await(run, over); !terminated || err != nil {
		t.Errorf("await a run that was stopped: %v, %v", terminated, err)
	}
	expect(t, "process all available of a run that was stopped", c.processAll(run), "")
	for range 2 {
		if terminated, err := c.awaitAny(over); !terminated || err != nil {
			t.Errorf("await any when one was stopped: %v, %v", terminated, err)
		}
	}
	_, err := c.manage(&sparkpb.StreamingQueryManagerCommand{Command: &sparkpb.StreamingQueryManagerCommand_ResetTerminated{ResetTerminated: true}})
	expect(t, "reset terminated", err, "")
	if terminated, err := c.awaitAny(100); terminated || err != nil {
		t.Errorf("await any after the reset: %v, %v", terminated, err)
	}
}

func awaitsOfAFailure(t *testing.T, w world) {
	c := w.client(t, goodToken)
	run := w.fail(t, c)
	c.stop(c.start(rate("well", "")).GetQueryId())
	text := "[id = " + run.GetId() + ", runId = " + run.GetRunId() + "]"
	for _, q := range []struct {
		what string
		ask  func() (bool, error)
	}{
		{"await", func() (bool, error) { return c.await(run, 60_000) }}, // first, until it has failed
		{"await any", func() (bool, error) { return c.awaitAny(60_000) }},
		{"await any once more", func() (bool, error) { return c.awaitAny(60_000) }},
		{"process all available", func() (bool, error) { return false, c.processAll(run) }},
	} {
		_, err := q.ask()
		if class(err) != "STREAM_FAILED" || !strings.Contains(status.Convert(err).Message(), text) {
			t.Errorf("%s of a run that has failed: %v (class %q), want STREAM_FAILED and %q", q.what, err, class(err), text)
		}
	}
}

func settingsKept(t *testing.T, w world) {
	c := w.client(t, goodToken)
	const key = "spark.nobody.knows"
	value := "7"
	_, err := c.config(&sparkpb.ConfigRequest_Operation{OpType: &sparkpb.ConfigRequest_Operation_Set{
		Set: &sparkpb.ConfigRequest_Set{Pairs: []*sparkpb.KeyValue{{Key: key, Value: &value}}},
	}})
	expect(t, "set", err, "")
	get := &sparkpb.ConfigRequest_Operation{OpType: &sparkpb.ConfigRequest_Operation_Get{Get: &sparkpb.ConfigRequest_Get{Keys: []string{key}}}}
	option := &sparkpb.ConfigRequest_Operation{OpType: &sparkpb.ConfigRequest_Operation_GetOption{GetOption: &sparkpb.ConfigRequest_GetOption{Keys: []string{key}}}}
	for what, ask := range map[string]*sparkpb.ConfigRequest_Operation{"get": get, "get option": option} {
		if out, err := c.config(ask); err != nil || len(out.GetPairs()) != 1 || out.GetPairs()[0].GetValue() != value {
			t.Errorf("%s: %v, %v", what, out, err)
		}
	}
	_, err = c.config(&sparkpb.ConfigRequest_Operation{OpType: &sparkpb.ConfigRequest_Operation_Unset{Unset: &sparkpb.ConfigRequest_Unset{Keys: []string{key}}}})
	expect(t, "unset", err, "")
	if out, err := c.config(option); err != nil || len(out.GetPairs()) != 1 || out.GetPairs()[0].Value != nil {
		t.Errorf("get option of what is not set: %v, %v", out, err)
	}
	_, err = c.config(get)
	expect(t, "get of what is not set", err, "SQL_CONF_NOT_FOUND")
}

func viewsAndSQL(t *testing.T, w world) {
	c := w.client(t, goodToken)
	view := func(replace bool) error {
		_, err := c.perform(&sparkpb.Command{CommandType: &sparkpb.Command_CreateDataframeView{
			CreateDataframeView: &sparkpb.CreateDataFrameViewCommand{Input: rateSource(), Name: "Ticks", Replace: replace},
		}})
		return err
	}
	expect(t, "create view", view(false), "")
	expect(t, "create the view again", view(false), "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS")
	expect(t, "replace the view", view(true), "")
	const query = "SELECT value FROM ticks"
	frames, err := c.perform(&sparkpb.Command{CommandType: &sparkpb.Command_SqlCommand{SqlCommand: &sparkpb.SqlCommand{Sql: query}}})
	expect(t, "sql", err, "")
	var relation *sparkpb.Relation
	for _, frame := range frames {
		if r := frame.GetSqlCommandResult(); r != nil {
			relation = r.GetRelation()
		}
	}
	if relation.GetSql().GetQuery() != query {
		t.Fatalf("sql answers with %v, want the query to read by", relation)
	}
	in := c.analyze()
	in.Analyze = &sparkpb.AnalyzePlanRequest_IsStreaming_{IsStreaming: &sparkpb.AnalyzePlanRequest_IsStreaming{
		Plan: &sparkpb.Plan{OpType: &sparkpb.Plan_Root{Root: relation}},
	}}
	if out, err := c.rpc.AnalyzePlan(t.Context(), in); err != nil || !out.GetIsStreaming().GetIsStreaming() {
		t.Errorf("SQL over a view of a stream is a stream? %v, %v", out, err)
	}
}
