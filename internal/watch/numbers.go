package watch

import (
	"math"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"sparkbridge/listener"
)

// Numbers are those of one batch, read from Spark's progress. What it does not say,
// or says in a form that is not known, is nil or zero.
type Numbers struct {
	BatchID       int64    `json:"batchId"`
	InputRows     int64    `json:"numInputRows"`
	InputRate     *float64 `json:"inputRowsPerSecond,omitempty"`
	ProcessedRate *float64 `json:"processedRowsPerSecond,omitempty"`
	// DurationMs has the phases of the batch that are in Phases.
	DurationMs map[string]float64 `json:"durationMs,omitempty"`
	// Watermark is zero as long as there is none, WatermarkDelay how far it was behind
	// the start of the trigger.
	Watermark      time.Time     `json:"watermark,omitzero"`
	WatermarkDelay time.Duration `json:"-"`
	// StateRows and StateBytes are sums over the stateful operators, nil for a query
	// without state.
	StateRows  *float64 `json:"stateRows,omitempty"`
	StateBytes *float64 `json:"stateBytes,omitempty"`
	// Lag is how many offsets the end of the batch was behind the latest ones, summed
	// over sources whose offsets are numbers by topic and partition.
	Lag *float64 `json:"lag,omitempty"`
	// AvgBehind and MaxBehind are Spark's metrics avg- and maxOffsetsBehindLatest of
	// the source that is worst off.
	AvgBehind *float64 `json:"avgOffsetsBehindLatest,omitempty"`
	MaxBehind *float64 `json:"maxOffsetsBehindLatest,omitempty"`

	lateRows int64 // dropped by the watermark
}

// Phases are the parts of a batch that Spark times, and their whole, triggerExecution.
var Phases = []string{
	"triggerExecution", "latestOffset", "getOffset", "setOffsetRange", "getEndOffset", "getBatch",
	"queryPlanning", "walCommit", "addBatch", "commitBatch", "commitOffsets",
}

// readNumbers reads a progress event.
func readNumbers(e listener.Event) Numbers {
	n := Numbers{BatchID: e.BatchID}
	gjson.ParseBytes(e.Payload).ForEach(func(k, v gjson.Result) bool {
		switch k.Str {
		case "numInputRows":
			n.InputRows = v.Int()
		case "inputRowsPerSecond":
			n.InputRate = finite(v)
		case "processedRowsPerSecond":
			n.ProcessedRate = finite(v)
		case "durationMs":
			n.DurationMs = phases(v)
		case "eventTime":
			n.readWatermark(v, e.Time)
		case "stateOperators":
			n.readState(v)
		case "sources":
			n.readSources(v)
		}
		return true
	})
	return n
}

// finite is a number, also one in quotes, and nil for anything else.
func finite(v gjson.Result) *float64 {
	if v.Type != gjson.Number && v.Type != gjson.String || v.Type == gjson.String && v.Str == "" {
		return nil
	}
	f := v.Float()
	if v.Type == gjson.String && f == 0 && gjson.Parse(v.Str).Type != gjson.Number || math.IsNaN(f) || math.IsInf(f, 0) {
		return nil
	}
	return &f
}

func phases(v gjson.Result) map[string]float64 {
	found := map[string]float64{}
	v.ForEach(func(k, v gjson.Result) bool {
		if ms := finite(v); ms != nil && slices.Contains(Phases, k.Str) {
			found[k.Str] = *ms
		}
		return true
	})
	return found
}

// readWatermark leaves out the epoch, which stands for none.
func (n *Numbers) readWatermark(v gjson.Result, trigger time.Time) {
	at, err := time.Parse(time.RFC3339, v.Get("watermark").Str)
	if err != nil || at.Unix() <= 0 {
		return
	}
	n.Watermark, n.WatermarkDelay = at, trigger.Sub(at)
}

func (n *Numbers) readState(v gjson.Result) {
	for _, operator := range v.Array() {
		add(&n.StateRows, finite(operator.Get("numRowsTotal")))
		add(&n.StateBytes, finite(operator.Get("memoryUsedBytes")))
		n.lateRows += operator.Get("numRowsDroppedByWatermark").Int()
	}
}

func (n *Numbers) readSources(v gjson.Result) {
	for _, source := range v.Array() {
		add(&n.Lag, behind(source.Get("endOffset"), source.Get("latestOffset")))
		worst(&n.AvgBehind, finite(source.Get("metrics.avgOffsetsBehindLatest")))
		worst(&n.MaxBehind, finite(source.Get("metrics.maxOffsetsBehindLatest")))
	}
}

// behind sums how far one set of offsets, numbers by topic and partition, is behind
// another. It is nil for other forms.
func behind(end, latest gjson.Result) *float64 {
	reached := map[[2]string]float64{}
	if !eachOffset(end, func(at [2]string, n float64) { reached[at] = n }) {
		return nil
	}
	var sum float64
	found := eachOffset(latest, func(at [2]string, n float64) { sum += max(n-reached[at], 0) })
	if !found {
		return nil
	}
	return &sum
}

// eachOffset reports whether there are offsets, and all have the form that is known.
func eachOffset(v gjson.Result, do func(at [2]string, n float64)) bool {
	found, wrong := false, false
	if !v.IsObject() {
		return false
	}
	v.ForEach(func(topic, partitions gjson.Result) bool {
		if wrong = !partitions.IsObject(); wrong {
			return false
		}
		partitions.ForEach(func(partition, n gjson.Result) bool {
			if wrong = n.Type != gjson.Number; wrong {
				return false
			}
			found = true
			do([2]string{topic.Str, partition.Str}, n.Num)
			return true
		})
		return !wrong
	})
	return found && !wrong
}

func add(sum **float64, n *float64) {
	if n == nil {
		return
	}
	if *sum == nil {
		*sum = new(float64)
	}
	**sum += *n
}

func worst(most **float64, n *float64) {
	if n != nil && (*most == nil || *n > **most) {
		*most = n
	}
}
