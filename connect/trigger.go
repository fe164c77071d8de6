package connect

import (
	"fmt"
	"time"

	"sparkbridge/connect/sparkpb"
)

// OutputMode says what a query writes of a result that changes.
type OutputMode string

// The output modes of Spark.
const (
	Append   OutputMode = "append"   // rows that will not change any more
	Complete OutputMode = "complete" // the whole result, each time
	Update   OutputMode = "update"   // rows that have changed
)

// Trigger says when a query runs a batch. The zero value is Spark's default: the next
// one as soon as the last one is done and there is data.
type Trigger struct {
	set func(*sparkpb.WriteStreamOperationStart)
	err error
}

// ProcessingTime runs a batch every so often; 0 is as soon as possible.
func ProcessingTime(every time.Duration) Trigger {
	if every < 0 {
		return Trigger{err: fmt.Errorf("trigger: a processing time of %s is negative: give 0 or more", every)}
	}
	return Trigger{set: func(w *sparkpb.WriteStreamOperationStart) {
		w.Trigger = &sparkpb.WriteStreamOperationStart_ProcessingTimeInterval{ProcessingTimeInterval: interval(every)}
	}}
}

// AvailableNow works off what is there, in as many batches as the source's limits make of it,
// and ends.
func AvailableNow() Trigger {
	return Trigger{set: func(w *sparkpb.WriteStreamOperationStart) {
		w.Trigger = &sparkpb.WriteStreamOperationStart_AvailableNow{AvailableNow: true}
	}}
}

// Once runs a single batch and ends. AvailableNow is better: it keeps to the limits of
// the source.
func Once() Trigger {
	return Trigger{set: func(w *sparkpb.WriteStreamOperationStart) {
		w.Trigger = &sparkpb.WriteStreamOperationStart_Once{Once: true}
	}}
}

// Continuous carries rows one by one and notes the position every so often. Few sources and
// sinks can, and Spark tells no progress of such a query.
func Continuous(checkpoint time.Duration) Trigger {
	if checkpoint < time.Millisecond {
		return Trigger{err: fmt.Errorf("trigger: a checkpoint interval of %s is too short: give one such as a second", checkpoint)}
	}
	return Trigger{set: func(w *sparkpb.WriteStreamOperationStart) {
		w.Trigger = &sparkpb.WriteStreamOperationStart_ContinuousCheckpointInterval{ContinuousCheckpointInterval: interval(checkpoint)}
	}}
}

// interval is a duration as Spark reads it; it counts in milliseconds.
func interval(d time.Duration) string { return fmt.Sprintf("%d milliseconds", d.Milliseconds()) }
