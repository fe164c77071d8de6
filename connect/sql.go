package connect

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"time"

	"sparkbridge/connect/sparkpb"
)

// Arg is a value for a :name in SQL.
type Arg struct {
	Name  string
	Value any // a string, a bool, or a number
}

// SQL runs a statement, or plans a query. A statement such as CREATE TABLE is run at once,
// and its result is what the rows are; of a SELECT they are described, and read by Collect or
// WriteStream. SQL over a view of a stream is a stream.
func (s *Session) SQL(ctx context.Context, query string, args ...Arg) (*DataFrame, error) {
	if err := named("SQL", query); err != nil {
		return nil, err
	}
	values, err := literals(args)
	if err != nil {
		return nil, fmt.Errorf("sql: %w", err)
	}
	var result *sparkpb.Relation
	err = s.perform(ctx, "run sql", planOf(&sparkpb.Command{CommandType: &sparkpb.Command_SqlCommand{
		SqlCommand: &sparkpb.SqlCommand{Sql: query, Args: values},
	}}), func(frame *sparkpb.ExecutePlanResponse) {
		if r := frame.GetSqlCommandResult(); r != nil {
			result = r.GetRelation()
		}
	})
	if e, refused := errors.AsType[*Error](err); refused && e.ofStream() {
		return s.streamingSQL(ctx, &sparkpb.SQL{Query: query, Args: values}, err)
	}
	switch {
	case err != nil:
		return nil, err
	case result == nil:
		return nil, classify("run sql", errNoResult)
	}
	return &DataFrame{s: s, relation: result}, nil
}

// streamingSQL is a query over a stream in Spark 3.5, which computes what it should
// only describe. Of any other statement the refusal stands.
func (s *Session) streamingSQL(ctx context.Context, query *sparkpb.SQL, refusal error) (*DataFrame, error) {
	d := s.frame(&sparkpb.Relation{RelType: &sparkpb.Relation_Sql{Sql: query}}, nil)
	if streaming, err := d.IsStreaming(ctx); err != nil || !streaming {
		return nil, refusal
	}
	return d, nil
}

func literals(args []Arg) (map[string]*sparkpb.Expression_Literal, error) {
	var values map[string]*sparkpb.Expression_Literal
	for _, arg := range args {
		value, err := literal(arg.Value)
		if err == nil {
			err = named("name of an argument", arg.Name)
		}
		if err != nil {
			return nil, fmt.Errorf("argument %q: %w", arg.Name, err)
		}
		if values == nil {
			values = make(map[string]*sparkpb.Expression_Literal, len(args))
		}
		values[arg.Name] = value
	}
	return values, nil
}

func literal(value any) (*sparkpb.Expression_Literal, error) {
	v := reflect.ValueOf(value)
	_, duration := value.(time.Duration)
	switch {
	case !v.IsValid(), duration: // as a number it would be nanoseconds, which nobody means
	case v.Kind() == reflect.String:
		return &sparkpb.Expression_Literal{LiteralType: &sparkpb.Expression_Literal_String_{String_: v.String()}}, nil
	case v.Kind() == reflect.Bool:
		return &sparkpb.Expression_Literal{LiteralType: &sparkpb.Expression_Literal_Boolean{Boolean: v.Bool()}}, nil
	case v.CanInt():
		return &sparkpb.Expression_Literal{LiteralType: &sparkpb.Expression_Literal_Long{Long: v.Int()}}, nil
	case v.CanUint() && v.Uint() <= math.MaxInt64:
		return &sparkpb.Expression_Literal{LiteralType: &sparkpb.Expression_Literal_Long{Long: int64(v.Uint())}}, nil
	case v.CanFloat():
		return &sparkpb.Expression_Literal{LiteralType: &sparkpb.Expression_Literal_Double{Double: v.Float()}}, nil
	}
	return nil, fmt.Errorf("a value of type %T has no place in SQL here: give a string, a bool or a number", value)
}

// IsStreaming says whether the rows are a stream.
func (d *DataFrame) IsStreaming(ctx context.Context) (bool, error) {
	answer, err := d.analyze(ctx, "ask whether it is a stream", func(plan *sparkpb.Plan, r *sparkpb.AnalyzePlanRequest) {
		r.Analyze = &sparkpb.AnalyzePlanRequest_IsStreaming_{IsStreaming: &sparkpb.AnalyzePlanRequest_IsStreaming{Plan: plan}}
	})
	return answer.GetIsStreaming().GetIsStreaming(), err
}

// Schema is the columns of the rows and their types, as a tree for people to read.
func (d *DataFrame) Schema(ctx context.Context) (string, error) {
	answer, err := d.analyze(ctx, "ask for the schema", func(plan *sparkpb.Plan, r *sparkpb.AnalyzePlanRequest) {
		r.Analyze = &sparkpb.AnalyzePlanRequest_TreeString_{TreeString: &sparkpb.AnalyzePlanRequest_TreeString{Plan: plan}}
	})
	return answer.GetTreeString().GetTreeString(), err
}

// Explain is how Spark would compute the rows; extended tells the steps to that plan too.
func (d *DataFrame) Explain(ctx context.Context, extended bool) (string, error) {
	mode := sparkpb.AnalyzePlanRequest_Explain_EXPLAIN_MODE_SIMPLE
	if extended {
		mode = sparkpb.AnalyzePlanRequest_Explain_EXPLAIN_MODE_EXTENDED
	}
	answer, err := d.analyze(ctx, "explain", func(plan *sparkpb.Plan, r *sparkpb.AnalyzePlanRequest) {
		r.Analyze = &sparkpb.AnalyzePlanRequest_Explain_{Explain: &sparkpb.AnalyzePlanRequest_Explain{Plan: plan, ExplainMode: mode}}
	})
	return answer.GetExplain().GetExplainString(), err
}

// analyze asks about the plan without running it.
func (d *DataFrame) analyze(ctx context.Context, op string, ask func(*sparkpb.Plan, *sparkpb.AnalyzePlanRequest)) (*sparkpb.AnalyzePlanResponse, error) {
	if d.err != nil {
		return nil, d.err
	}
	r := d.s.analyzeRequest()
	ask(&sparkpb.Plan{OpType: &sparkpb.Plan_Root{Root: d.relation}}, r)
	var answer *sparkpb.AnalyzePlanResponse
	err := d.s.demand(ctx, op, func(ctx context.Context, spark sparkpb.SparkConnectServiceClient) (err error) {
		answer, err = spark.AnalyzePlan(d.s.outgoing(ctx), r, d.s.receiveLimit())
		return err
	})
	return answer, err
}
