package connect

import (
	"context"
	"errors"
	"slices"

	"sparkbridge/connect/sparkpb"
)

// StreamWriter says where a query writes, and how it runs. Its methods return another
// writer; Start and ToTable start the query. Formats and options go to Spark untouched.
//
// Sinks that need code inside Spark (foreach, foreachBatch) cannot be had from Go: write to
// Kafka, files, a table or memory, and read there.
type StreamWriter struct {
	d         *DataFrame
	format    string
	options   options
	partition []string
	name      string
	mode      OutputMode
	trigger   Trigger
	path      string
}

// WriteStream begins to write a stream.
func (d *DataFrame) WriteStream() *StreamWriter { return &StreamWriter{d: d} }

// Format is the sink: parquet, kafka, delta, memory, console, noop, …
func (w StreamWriter) Format(name string) *StreamWriter {
	w.format = name
	return &w
}

// Option sets an option of the sink, such as checkpointLocation. The value is a string, a
// bool or a number.
func (w StreamWriter) Option(key string, value any) *StreamWriter {
	w.options = w.options.with(key, value)
	return &w
}

// Options sets options of the sink.
func (w StreamWriter) Options(options map[string]string) *StreamWriter {
	w.options = w.options.withAll(options)
	return &w
}

// Path is the folder that a sink of files writes to.
func (w StreamWriter) Path(path string) *StreamWriter {
	w.path = path
	return &w
}

// PartitionBy puts the rows into a folder for each value of these columns.
func (w StreamWriter) PartitionBy(columns ...string) *StreamWriter {
	w.partition = slices.Clone(columns)
	return &w
}

// QueryName names the query. No other query of the session may have the name while it
// runs. The memory sink makes a table of this name.
func (w StreamWriter) QueryName(name string) *StreamWriter {
	w.name = name
	return &w
}

// OutputMode says what is written of a result that changes; Append if nothing is said.
func (w StreamWriter) OutputMode(mode OutputMode) *StreamWriter {
	w.mode = mode
	return &w
}

// Trigger says when batches run.
func (w StreamWriter) Trigger(t Trigger) *StreamWriter {
	w.trigger = t
	return &w
}

// Start starts the query and returns when Spark has started it. A query that cannot
// begin is an *Error with Spark's error class. When ctx ends before Spark has answered, it is
// not known whether the query runs.
//
// The same checkpoint under a query that runs already stops that one, without a word.
func (w StreamWriter) Start(ctx context.Context) (*StreamingQuery, error) {
	start, err := w.command()
	if err != nil {
		return nil, err
	}
	return w.d.s.startQuery(ctx, start)
}

// ToTable starts the query as Start does. It writes to a table of the catalog, which is
// made if it is missing.
func (w StreamWriter) ToTable(ctx context.Context, name string) (*StreamingQuery, error) {
	if err := named("table", name); err != nil {
		return nil, err
	}
	if w.path != "" {
		return nil, errors.New("to table: the writer has a path, which a table has itself: drop Path, or use Start")
	}
	start, err := w.command()
	if err != nil {
		return nil, err
	}
	start.SinkDestination = &sparkpb.WriteStreamOperationStart_TableName{TableName: name}
	return w.d.s.startQuery(ctx, start)
}

// command is what Start asks for.
func (w StreamWriter) command() (*sparkpb.WriteStreamOperationStart, error) {
	if err := errors.Join(w.d.err, w.options.err, w.trigger.err); err != nil {
		return nil, err
	}
	start := &sparkpb.WriteStreamOperationStart{
		Input:                   w.d.relation,
		Format:                  w.format,
		Options:                 w.options.values,
		PartitioningColumnNames: w.partition,
		QueryName:               w.name,
		OutputMode:              string(w.mode),
	}
	if w.path != "" {
		start.SinkDestination = &sparkpb.WriteStreamOperationStart_Path{Path: w.path}
	}
	if w.trigger.set != nil {
		w.trigger.set(start)
	}
	return start, nil
}

// startQuery starts a query exactly once.
func (s *Session) startQuery(ctx context.Context, start *sparkpb.WriteStreamOperationStart) (*StreamingQuery, error) {
	op := "start query"
	if start.QueryName != "" {
		op += " " + start.QueryName
	}
	var result *sparkpb.WriteStreamOperationStartResult
	var started []byte
	err := s.Streams().bus.Start(ctx, func(ctx context.Context) ([]byte, error) {
		err := s.perform(ctx, op, planOf(&sparkpb.Command{CommandType: &sparkpb.Command_WriteStreamOperationStart{
			WriteStreamOperationStart: start,
		}}), func(frame *sparkpb.ExecutePlanResponse) {
			if r := frame.GetWriteStreamOperationStartResult(); r != nil {
				result = r
			}
		})
		switch {
		case err != nil:
			return nil, err
		case result == nil:
			return nil, classify(op, errNoResult)
		case result.QueryStartedEventJson != nil:
			started = []byte(result.GetQueryStartedEventJson())
		}
		return started, nil
	})
	if result == nil {
		return nil, err
	}
	if err != nil { // the query runs; only what is told of its start makes no sense
		s.log.Warn("the start of a query cannot be told to the listeners", "query", result.GetName(), "err", err)
	}
	return &StreamingQuery{
		s: s, id: result.GetQueryId().GetId(), runID: result.GetQueryId().GetRunId(), name: result.GetName(), started: started,
	}, nil
}
