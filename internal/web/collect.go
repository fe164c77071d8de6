package web

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sparkbridge/internal/watch"
	"sparkbridge/listener"
)

// emitter sends metrics.
type emitter struct{ out chan<- prometheus.Metric }

func (e emitter) gauge(d *prometheus.Desc, v float64, labels ...string) {
	e.out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

func (e emitter) counter(d *prometheus.Desc, v uint64, labels ...string) {
	e.out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(v), labels...)
}

func (e emitter) histogram(d *prometheus.Desc, v watch.Durations, labels ...string) {
	e.out <- prometheus.MustNewConstHistogram(d, v.Count, v.Sum, v.Upto, labels...)
}

// optional leaves out what is not known.
func (e emitter) optional(d *prometheus.Desc, v *float64, labels ...string) {
	if v != nil {
		e.gauge(d, *v, labels...)
	}
}

func (e emitter) moment(d *prometheus.Desc, t time.Time, labels ...string) {
	if !t.IsZero() {
		e.gauge(d, float64(t.UnixMilli())/1000, labels...)
	}
}

func (e emitter) source(s watch.Source) {
	for _, state := range sourceStates {
		e.gauge(sourceState, one(s.State == state), s.Name, state)
	}
	e.gauge(sourceRequired, one(s.Required), s.Name)
	e.counter(sourceDuplicates, s.Duplicates, s.Name)
	for _, start := range s.Starts {
		e.gauge(startFailed, one(start.State == watch.StartFailed), s.Name, start.Name)
	}
	for _, why := range watch.Stops {
		e.counter(sourceReattaches, s.Reattaches[why], s.Name, string(why))
	}
}

func (e emitter) counts(c watch.Counts) {
	for k, n := range c.Events {
		e.counter(eventsTotal, n, k.Source, string(k.Kind), string(k.Origin))
	}
	for k, n := range c.Changes {
		e.counter(sourceChanges, n, k.Source, k.State)
	}
	for k, n := range c.Ends {
		e.counter(endsTotal, n, k.Source, string(k.Outcome), k.ErrorClass)
	}
	for source, n := range c.Gaps {
		e.counter(gapsTotal, n, source)
	}
	for source, n := range c.Missing {
		e.counter(missingTotal, n, source)
	}
}

func (e emitter) sink(s watch.Sink, st watch.Status) {
	e.counter(sinkDelivered, s.Delivered, s.Name, s.Kind)
	e.counter(sinkBuried, s.Buried, s.Name, s.Kind)
	e.gauge(sinkLetters, float64(s.DeadLetters), s.Name, s.Kind)
	e.counter(sinkLost, s.Lost, s.Name, s.Kind)
	if s.Ambiguous != nil {
		e.counter(sinkAmbiguous, *s.Ambiguous, s.Name, s.Kind)
	}
	for _, why := range watch.Reasons {
		e.counter(sinkFailures, s.Failures[why], s.Name, s.Kind, string(why))
	}
	e.gauge(sinkFailing, one(s.Error != ""), s.Name, s.Kind)
	e.gauge(sinkStopped, one(s.Stopped), s.Name, s.Kind)
	e.gauge(sinkPending, float64(s.Pending), s.Name, s.Kind)
	e.gauge(sinkOldest, age(st.Now, s.Oldest), s.Name, s.Kind)
	e.histogram(sinkTook, s.Took, s.Name, s.Kind)
}

func (e emitter) journal(st watch.Status) {
	j := st.Journal
	e.gauge(journalBytes, float64(j.Bytes))
	e.gauge(journalSegments, float64(j.Segments))
	e.gauge(journalEvents, float64(j.Next-j.First))
	e.gauge(journalOldest, age(st.Now, j.Oldest))
	e.gauge(journalFailing, one(j.Error != ""))
	e.counter(journalFailures, j.Failures)
	e.histogram(journalTook, j.Writes)
}

func (e emitter) query(q watch.Query) {
	at := []string{q.Source, q.Label}
	with := func(more ...string) []string { return append(at[:2:2], more...) }
	e.gauge(queryActive, one(q.IsActive), at...)
	e.counter(queryBatches, q.Batches, at...)
	e.counter(queryRowsTotal, q.Rows, at...)
	e.counter(queryLateRows, q.LateRows, at...)
	for end, n := range q.Ends {
		e.counter(queryEnds, n, with(string(end.Outcome), end.ErrorClass)...)
	}
	e.moment(queryLastEnd, q.Ended, with(string(q.Outcome), q.ErrorClass)...)
	e.moment(queryLastProgress, q.LastProgress, at...)
	e.moment(queryLastEvent, q.LastEvent, at...)
	if !q.LastProgress.IsZero() {
		e.batch(q, at)
		for phase, ms := range q.DurationMs {
			e.gauge(queryPhase, ms/1000, with(phase)...)
		}
	}
}

// batch sends what the last batch said.
func (e emitter) batch(q watch.Query, at []string) {
	if q.BatchID != listener.NoBatch {
		e.gauge(queryBatchID, float64(q.BatchID), at...)
	}
	e.gauge(queryRows, float64(q.InputRows), at...)
	e.optional(queryInputRate, q.InputRate, at...)
	e.optional(queryProcessedRate, q.ProcessedRate, at...)
	e.optional(queryStateRows, q.StateRows, at...)
	e.optional(queryStateBytes, q.StateBytes, at...)
	e.optional(queryLag, q.Lag, at...)
	e.optional(queryAvgBehind, q.AvgBehind, at...)
	e.optional(queryMaxBehind, q.MaxBehind, at...)
	if !q.Watermark.IsZero() {
		e.moment(queryWatermark, q.Watermark, at...)
		e.gauge(queryDelay, q.WatermarkDelay.Seconds(), at...)
	}
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func age(now, then time.Time) float64 {
	if then.IsZero() {
		return 0
	}
	return max(now.Sub(then).Seconds(), 0)
}
