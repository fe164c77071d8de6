package listener

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/tidwall/gjson"
)

// Progress is what Spark tells of one batch, with types. A number that Spark left out is
// nil; one that is not finite, which only recent_progress tells (as "NaN" and
// "Infinity"), is NaN or an infinity. The names are Spark's.
type Progress struct {
	ID, RunID string
	Name      string    // empty where the query has none
	Timestamp time.Time // start of the trigger
	BatchID   int64     // NoBatch of a Spark that numbers none
	// BatchDuration is how long the trigger took, in milliseconds; nil before Spark 3.1.
	BatchDuration *int64

	// What came over all sources, rows and rows per second. Where Spark tells it of the sources
	// alone, it is their sum.
	NumInputRows           *int64
	InputRowsPerSecond     *float64
	ProcessedRowsPerSecond *float64

	DurationMs      map[string]int64 // by phase, such as addBatch; triggerExecution is all
	EventTime       EventTime
	StateOperators  []StateOperatorProgress
	Sources         []SourceProgress
	Sink            SinkProgress
	ObservedMetrics map[string]json.RawMessage // by name, each an object by column

	// Raw is the document as it came, without the wrapper that it has on the bus.
	Raw json.RawMessage
}

// EventTime is about the event times of a batch; zero is what Spark did not tell.
type EventTime struct{ Avg, Max, Min, Watermark time.Time }

// SourceProgress is what a batch read from one source. Offsets are JSON, in the
// source's own form; a null, or one that is missing, is nil.
type SourceProgress struct {
	Description                          string
	StartOffset, EndOffset, LatestOffset json.RawMessage
	NumInputRows                         *int64
	InputRowsPerSecond                   *float64
	ProcessedRowsPerSecond               *float64
	Metrics                              map[string]string
}

// SinkProgress is what a batch wrote.
type SinkProgress struct {
	Description string
	// NumOutputRows is nil where Spark does not tell it, or the sink does not count.
	NumOutputRows *int64
	Metrics       map[string]string
}

// StateOperatorProgress is what one stateful operator of a query holds and has done. Times are
// in milliseconds.
type StateOperatorProgress struct {
	OperatorName              string
	NumRowsTotal              *int64
	NumRowsUpdated            *int64
	NumRowsRemoved            *int64
	NumRowsDroppedByWatermark *int64
	AllUpdatesTimeMs          *int64
	AllRemovalsTimeMs         *int64
	CommitTimeMs              *int64
	MemoryUsedBytes           *int64
	NumShufflePartitions      *int64
	NumStateStoreInstances    *int64
	CustomMetrics             map[string]int64
}

// DecodeProgress reads a progress document: the JSON of a progress event of the bus, with its
// wrapper or without, or one of recent_progress and last_progress. Fields that are not
// known stay in Raw.
func DecodeProgress(document []byte) (*Progress, error) {
	doc := gjson.ParseBytes(document)
	if !gjson.ValidBytes(document) || !doc.IsObject() {
		return nil, errors.New("decode progress: not a JSON object")
	}
	if inner := doc.Get("progress"); inner.IsObject() && !doc.Get("runId").Exists() {
		doc = inner
	}
	p := &Progress{
		ID: text(doc.Get("id")), RunID: text(doc.Get("runId")), Name: text(doc.Get("name")),
		BatchID:         NoBatch,
		BatchDuration:   whole(doc.Get("batchDuration")),
		DurationMs:      wholes(doc.Get("durationMs")),
		EventTime:       eventTime(doc.Get("eventTime")),
		Sink:            sinkProgress(doc.Get("sink")),
		ObservedMetrics: objects(gjson.Parse(observed(doc.Get("observedMetrics")))),
		Raw:             json.RawMessage(doc.Raw),
	}
	if p.RunID == "" {
		return nil, errors.New("decode progress: it has no runId, which every progress document has")
	}
	p.Timestamp, _ = instant(doc.Get("timestamp"))
	if batch := whole(doc.Get("batchId")); batch != nil {
		p.BatchID = *batch
	}
	for _, s := range doc.Get("sources").Array() {
		p.Sources = append(p.Sources, sourceProgress(s))
	}
	for _, s := range doc.Get("stateOperators").Array() {
		p.StateOperators = append(p.StateOperators, stateOperatorProgress(s))
	}
	p.totals(doc)
	return p, nil
}

// Idle says that it is the trace of a trigger that found nothing, which stands in
// recent_progress under the number of the batch that comes next.
func (p *Progress) Idle() bool { return isIdleEntry(p.Raw) }

// MarshalJSON gives Spark's document.
func (p *Progress) MarshalJSON() ([]byte, error) { return p.Raw, nil }

// totals are those of the document, or what the sources sum up to.
func (p *Progress) totals(doc gjson.Result) {
	p.NumInputRows = whole(doc.Get("numInputRows"))
	if p.NumInputRows != nil {
		p.InputRowsPerSecond = number(doc.Get("inputRowsPerSecond"))
		p.ProcessedRowsPerSecond = number(doc.Get("processedRowsPerSecond"))
		return
	}
	for i, s := range p.Sources {
		p.NumInputRows = plus(p.NumInputRows, s.NumInputRows, i == 0)
		p.InputRowsPerSecond = plus(p.InputRowsPerSecond, s.InputRowsPerSecond, i == 0)
		p.ProcessedRowsPerSecond = plus(p.ProcessedRowsPerSecond, s.ProcessedRowsPerSecond, i == 0)
	}
}

// plus sums what is known; a sum with a part that is not known is not known.
func plus[N int64 | float64](sum, part *N, first bool) *N {
	switch {
	case first:
		return part
	case sum == nil || part == nil:
		return nil
	}
	n := *sum + *part
	return &n
}

func eventTime(r gjson.Result) (t EventTime) {
	t.Avg, _ = instant(r.Get("avg"))
	t.Max, _ = instant(r.Get("max"))
	t.Min, _ = instant(r.Get("min"))
	t.Watermark, _ = instant(r.Get("watermark"))
	return t
}

func sourceProgress(r gjson.Result) SourceProgress {
	return SourceProgress{
		Description:            text(r.Get("description")),
		StartOffset:            offsetJSON(r.Get("startOffset")),
		EndOffset:              offsetJSON(r.Get("endOffset")),
		LatestOffset:           offsetJSON(r.Get("latestOffset")),
		NumInputRows:           whole(r.Get("numInputRows")),
		InputRowsPerSecond:     number(r.Get("inputRowsPerSecond")),
		ProcessedRowsPerSecond: number(r.Get("processedRowsPerSecond")),
		Metrics:                texts(r.Get("metrics")),
	}
}

func sinkProgress(r gjson.Result) SinkProgress {
	s := SinkProgress{
		Description:   text(r.Get("description")),
		NumOutputRows: whole(r.Get("numOutputRows")),
		Metrics:       texts(r.Get("metrics")),
	}
	if s.NumOutputRows != nil && *s.NumOutputRows < 0 { // as Spark writes that it does not know
		s.NumOutputRows = nil
	}
	return s
}

func stateOperatorProgress(r gjson.Result) StateOperatorProgress {
	return StateOperatorProgress{
		OperatorName:              text(r.Get("operatorName")),
		NumRowsTotal:              whole(r.Get("numRowsTotal")),
		NumRowsUpdated:            whole(r.Get("numRowsUpdated")),
		NumRowsRemoved:            whole(r.Get("numRowsRemoved")),
		NumRowsDroppedByWatermark: whole(r.Get("numRowsDroppedByWatermark")),
		AllUpdatesTimeMs:          whole(r.Get("allUpdatesTimeMs")),
		AllRemovalsTimeMs:         whole(r.Get("allRemovalsTimeMs")),
		CommitTimeMs:              whole(r.Get("commitTimeMs")),
		MemoryUsedBytes:           whole(r.Get("memoryUsedBytes")),
		NumShufflePartitions:      whole(r.Get("numShufflePartitions")),
		NumStateStoreInstances:    whole(r.Get("numStateStoreInstances")),
		CustomMetrics:             wholes(r.Get("customMetrics")),
	}
}

// number reads a number, or the text that stands for one which is not finite.
func number(r gjson.Result) *float64 {
	n := r.Num
	switch {
	case r.Type == gjson.Number:
	case r.Type != gjson.String:
		return nil
	case r.Str == "NaN":
		n = math.NaN()
	case r.Str == "Infinity":
		n = math.Inf(1)
	case r.Str == "-Infinity":
		n = math.Inf(-1)
	default:
		return nil
	}
	return &n
}

func whole(r gjson.Result) *int64 {
	if r.Type != gjson.Number {
		return nil
	}
	n := r.Int()
	return &n
}

func wholes(r gjson.Result) map[string]int64 {
	return collect(r, func(v gjson.Result) (int64, bool) { return v.Int(), v.Type == gjson.Number })
}

func texts(r gjson.Result) map[string]string {
	return collect(r, func(v gjson.Result) (string, bool) { return v.String(), v.Type != gjson.Null })
}

func objects(r gjson.Result) map[string]json.RawMessage {
	return collect(r, func(v gjson.Result) (json.RawMessage, bool) { return json.RawMessage(v.Raw), true })
}

// collect makes a map of an object; nil of anything else, and of an empty one.
func collect[V any](r gjson.Result, value func(gjson.Result) (V, bool)) map[string]V {
	var out map[string]V
	if !r.IsObject() {
		return nil
	}
	r.ForEach(func(key, v gjson.Result) bool {
		if got, ok := value(v); ok {
			if out == nil {
				out = make(map[string]V)
			}
			out[key.Str] = got
		}
		return true
	})
	return out
}

// offsetJSON is an offset as JSON: the dialect of recent_progress has it in a string.
func offsetJSON(r gjson.Result) json.RawMessage {
	if r.Type == gjson.Null {
		return nil
	}
	return json.RawMessage(offset(r))
}
