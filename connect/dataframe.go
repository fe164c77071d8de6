package connect

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"sparkbridge/connect/sparkpb"
)

// DataFrame describes rows, bounded or a stream: where they come from and what is done
// with them. It is a value that never changes; each method returns another one. Nothing
// is asked of Spark before a method that takes a ctx; that one also returns what was
// wrong before it.
//
// Columns and conditions are expressions in SQL, with or without a name: "amount * 2 AS
// double", "window(timestamp, '5 minutes')". What has no method here is written in SQL over a
// view.
type DataFrame struct {
	s        *Session
	relation *sparkpb.Relation
	err      error // what was wrong on the way here
}

// frame numbers a relation, as Spark's own clients do: it tells the metrics of two apart.
func (s *Session) frame(r *sparkpb.Relation, err error) *DataFrame {
	id := s.plans.Add(1)
	r.Common = &sparkpb.RelationCommon{PlanId: &id}
	return &DataFrame{s: s, relation: r, err: err}
}

// then is the frame with one more step.
func (d *DataFrame) then(r *sparkpb.Relation, err error) *DataFrame {
	if d.err != nil {
		err = d.err
	}
	return d.s.frame(r, err)
}

// Table reads a table or a view as it is now. Of a view over a stream it is that stream.
func (s *Session) Table(name string) *DataFrame {
	return s.frame(&sparkpb.Relation{RelType: &sparkpb.Relation_Read{Read: &sparkpb.Read{
		ReadType: &sparkpb.Read_NamedTable_{NamedTable: &sparkpb.Read_NamedTable{UnparsedIdentifier: name}},
	}}}, named("table", name))
}

// Select keeps these columns.
func (d *DataFrame) Select(columns ...string) *DataFrame {
	return d.then(&sparkpb.Relation{RelType: &sparkpb.Relation_Project{Project: &sparkpb.Project{
		Input: d.relation, Expressions: expressions(columns),
	}}}, nil)
}

// Where keeps the rows for which a condition holds.
func (d *DataFrame) Where(condition string) *DataFrame {
	return d.then(&sparkpb.Relation{RelType: &sparkpb.Relation_Filter{Filter: &sparkpb.Filter{
		Input: d.relation, Condition: expression(condition),
	}}}, named("condition of Where", condition))
}

// Limit keeps the first n rows.
func (d *DataFrame) Limit(n int) *DataFrame {
	rows, err := rowCount("limit", n)
	return d.then(&sparkpb.Relation{RelType: &sparkpb.Relation_Limit{Limit: &sparkpb.Limit{Input: d.relation, Limit: rows}}}, err)
}

// rowCount is a number of rows as Spark counts them.
func rowCount(what string, n int) (int32, error) {
	if n < 0 || n > math.MaxInt32 {
		return 0, fmt.Errorf("%s: %d is no number of rows: give one from 0 to %d", what, n, math.MaxInt32)
	}
	return int32(n), nil
}

// WithWatermark says how late a row may be: delay is an interval such as "10 minutes",
// eventTime the column with the time of the row. Aggregates of windows that are older are
// final, and their state is dropped.
func (d *DataFrame) WithWatermark(eventTime, delay string) *DataFrame {
	return d.then(&sparkpb.Relation{RelType: &sparkpb.Relation_WithWatermark{WithWatermark: &sparkpb.WithWatermark{
		Input: d.relation, EventTime: eventTime, DelayThreshold: delay,
	}}}, errors.Join(named("event time of WithWatermark", eventTime), named("delay of WithWatermark", delay)))
}

// DropDuplicates keeps one of the rows that are equal in these columns, or in all where
// none is named. Over a stream Spark remembers what it has seen for as long as the watermark
// says, which must be on one of the columns, and else for ever.
func (d *DataFrame) DropDuplicates(columns ...string) *DataFrame {
	return d.deduplicate(columns, false)
}

// DropDuplicatesWithinWatermark keeps one of the rows that are equal in these columns, or in
// all where none is named, and that come within the delay of the watermark of each other.
func (d *DataFrame) DropDuplicatesWithinWatermark(columns ...string) *DataFrame {
	return d.deduplicate(columns, true)
}

func (d *DataFrame) deduplicate(columns []string, within bool) *DataFrame {
	all := len(columns) == 0
	r := &sparkpb.Deduplicate{Input: d.relation, ColumnNames: slices.Clone(columns), WithinWatermark: &within}
	if all {
		r.AllColumnsAsKeys = &all
	}
	return d.then(&sparkpb.Relation{RelType: &sparkpb.Relation_Deduplicate{Deduplicate: r}}, nil)
}

// Observe measures the rows that pass, by aggregates such as "count(*) AS rows". In a
// streaming query the metrics of each batch stand under name in its progress.
func (d *DataFrame) Observe(name string, metrics ...string) *DataFrame {
	err := named("name of Observe", name)
	if len(metrics) == 0 {
		err = errors.Join(err, errors.New("observe: there is no metric: name at least one, such as count(*) AS rows"))
	}
	return d.then(&sparkpb.Relation{RelType: &sparkpb.Relation_CollectMetrics{CollectMetrics: &sparkpb.CollectMetrics{
		Input: d.relation, Name: name, Metrics: expressions(metrics),
	}}}, err)
}

// GroupedData is rows in groups, of which Agg makes one row each.
type GroupedData struct {
	d  *DataFrame
	by []string
}

// GroupBy puts the rows into groups; window(…) and session_window(…) are groups in time.
// Without a column all rows are one group.
func (d *DataFrame) GroupBy(columns ...string) *GroupedData {
	return &GroupedData{d, slices.Clone(columns)}
}

// Agg makes one row of each group: what it is grouped by, and these aggregates.
func (g *GroupedData) Agg(aggregates ...string) *DataFrame {
	var err error
	if len(aggregates) == 0 {
		err = errors.New("agg: there is no aggregate: name at least one, such as count(*) AS n")
	}
	return g.d.then(&sparkpb.Relation{RelType: &sparkpb.Relation_Aggregate{Aggregate: &sparkpb.Aggregate{
		Input: g.d.relation, GroupType: sparkpb.Aggregate_GROUP_TYPE_GROUPBY,
		GroupingExpressions: expressions(g.by), AggregateExpressions: expressions(aggregates),
	}}}, err)
}

// CreateTempView gives the rows a name in the session, for SQL. A view that is there
// already is an *Error.
func (d *DataFrame) CreateTempView(ctx context.Context, name string) error {
	return d.view(ctx, name, false)
}

// CreateOrReplaceTempView gives the rows a name in the session, for SQL, in place of
// what had it.
func (d *DataFrame) CreateOrReplaceTempView(ctx context.Context, name string) error {
	return d.view(ctx, name, true)
}

func (d *DataFrame) view(ctx context.Context, name string, replace bool) error {
	if err := errors.Join(d.err, named("view", name)); err != nil {
		return err
	}
	return d.s.perform(ctx, "create view "+name, planOf(&sparkpb.Command{CommandType: &sparkpb.Command_CreateDataframeView{
		CreateDataframeView: &sparkpb.CreateDataFrameViewCommand{Input: d.relation, Name: name, Replace: replace},
	}}), func(*sparkpb.ExecutePlanResponse) {})
}

func expressions(texts []string) []*sparkpb.Expression {
	out := make([]*sparkpb.Expression, 0, len(texts))
	for _, text := range texts {
		out = append(out, expression(text))
	}
	return out
}

func expression(text string) *sparkpb.Expression {
	return &sparkpb.Expression{ExprType: &sparkpb.Expression_ExpressionString_{
		ExpressionString: &sparkpb.Expression_ExpressionString{Expression: text},
	}}
}

// named refuses an empty text, which Spark would only call a syntax error.
func named(what, text string) error {
	if strings.TrimSpace(text) == "" {
		return fmt.Errorf("%s is empty: write one", what)
	}
	return nil
}
