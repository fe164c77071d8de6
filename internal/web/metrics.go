package web

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"sparkbridge/internal/watch"
)

// newRegistry returns a registry of its own with the metrics of the bridge and of
// the process.
func newRegistry(status func() watch.Status, counts func() watch.Counts) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(
		&collector{status, counts},
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return r
}

// collector makes metrics of what is known at the moment of a scrape.
type collector struct {
	status func() watch.Status
	counts func() watch.Counts
}

// Describe sends nothing: which series there are is known at a scrape.
func (*collector) Describe(chan<- *prometheus.Desc) {}

// Collect sends all metrics.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	st, counts := c.status(), c.counts()
	e := emitter{out}
	e.gauge(buildInfo, 1, st.Version)
	for _, source := range st.Sources {
		e.source(source)
	}
	e.counts(counts)
	for _, sink := range st.Sinks {
		e.sink(sink, st)
	}
	e.journal(st)
	e.gauge(queriesKnown, float64(len(st.Queries)))
	e.counter(queriesUnlisted, counts.Unlisted)
	for _, q := range st.Queries {
		e.query(q)
	}
}

// sourceStates are all values of the label state.
var sourceStates = []string{"waiting", "attached", "lost", "taken", "polling", "closed"}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("sparkbridge_"+name, help, labels, nil)
}

var (
	buildInfo = desc("build_info", "1, with the version of the bridge.", "version")

	sourceState      = desc("source_state", "1 for the state that the source is in, 0 for the others.", "source", "state")
	sourceRequired   = desc("source_required", "1 if the loss of the source makes the bridge unready.", "source")
	sourceChanges    = desc("source_state_changes_total", "Times that the source came to a state, or to a new reason for it.", "source", "state")
	sourceReattaches = desc("source_reattaches_total", "Times that the listener bus was read on where reading had stopped, without a loss.", "source", "after")
	sourceDuplicates = desc("source_duplicates_total", "Repeats on the listener bus that were dropped.", "source")
	startFailed      = desc("query_start_failed", "1 if a query that the bridge is to start was refused by Spark, 0 if not.", "source", "query")
	eventsTotal      = desc("events_total", "Events that the journal took.", "source", "kind", "origin")
	gapsTotal        = desc("gaps_total", "Gaps: holes in a run that could not be filled.", "source")
	missingTotal     = desc("missing_batches_total", "Batches whose progress is in a gap.", "source")
	endsTotal        = desc("ends_total", "Events of ends of runs; an inferred end and Spark's own are two.", "source", "outcome", "error_class")

	sinkDelivered = desc("sink_delivered_events_total", "Events that the destination acknowledged.", "sink", "type")
	sinkBuried    = desc("sink_dead_letters_total", "Events that became dead letters.", "sink", "type")
	sinkLetters   = desc("sink_kept_dead_letters", "Dead letters that are kept.", "sink", "type")
	sinkLost      = desc("sink_lost_events_total", "Events that retention deleted before the sink had them; gap events name them.", "sink", "type")
	sinkAmbiguous = desc("sink_ambiguous_events_total", "Events of which no Kafka broker has said whether it has them; they were sent again.", "sink", "type")
	sinkFailures  = desc("sink_failures_total", "Deliveries that failed; each is tried again.", "sink", "type", "reason")
	sinkFailing   = desc("sink_failing", "1 while the last delivery failed.", "sink", "type")
	sinkStopped   = desc("sink_stopped", "1 if the destination wants no more events, so that the sink tries nothing until it is told to.", "sink", "type")
	sinkPending   = desc("sink_pending_events", "Events of the journal from the first one on that the sink has not settled: neither delivered, nor unwanted, nor a dead letter.", "sink", "type")
	sinkOldest    = desc("sink_oldest_pending_age_seconds", "Age of the first event that the sink has not settled, 0 if there is none.", "sink", "type")
	sinkTook      = desc("sink_delivery_duration_seconds", "How long deliveries took, those that failed too.", "sink", "type")

	journalBytes    = desc("journal_size_bytes", "Size of the journal's segments.")
	journalSegments = desc("journal_segments", "Segments of the journal.")
	journalEvents   = desc("journal_events", "Events that the journal holds.")
	journalOldest   = desc("journal_oldest_event_age_seconds", "Age of the oldest event that the journal holds, 0 if there is none.")
	journalFailing  = desc("journal_failing", "1 while the journal cannot be written.")
	journalFailures = desc("journal_write_failures_total", "Writes to the journal that failed; each is tried again.")
	journalTook     = desc("journal_write_duration_seconds", "How long writes to the journal took, fsync included.")

	queriesKnown    = desc("queries", "Queries that have metrics: those that run, and those that ended less than ten minutes ago.")
	queriesUnlisted = desc("queries_unlisted_events_total", "Events of queries without metrics, because there are too many.")

	queryActive        = perQuery("active", "1 while the query runs, 0 after its end.")
	queryBatches       = perQuery("batches_total", "Batches seen since the bridge started.")
	queryRowsTotal     = perQuery("input_rows_total", "Rows read by these batches.")
	queryLateRows      = perQuery("late_rows_total", "Rows that these batches dropped because of the watermark.")
	queryEnds          = perQuery("ends_total", "Ends of its runs.", "outcome", "error_class")
	queryLastEnd       = perQuery("last_end_timestamp_seconds", "When its last run to end did so, and how.", "outcome", "error_class")
	queryBatchID       = perQuery("last_batch_id", "Id of the last batch.")
	queryRows          = perQuery("last_batch_input_rows", "Rows read by the last batch.")
	queryInputRate     = perQuery("input_rows_per_second", "Rate at which data came, as Spark says.")
	queryProcessedRate = perQuery("processed_rows_per_second", "Rate at which data was processed, as Spark says.")
	queryPhase         = perQuery("last_batch_duration_seconds", "Duration of the last batch by phase; triggerExecution is the whole.", "phase")
	queryWatermark     = perQuery("watermark_timestamp_seconds", "Event-time watermark.")
	queryDelay         = perQuery("watermark_delay_seconds", "How far the watermark was behind the start of the last trigger.")
	queryStateRows     = perQuery("state_rows", "Rows in the state of all operators.")
	queryStateBytes    = perQuery("state_memory_bytes", "Memory used by the state of all operators.")
	queryLag           = perQuery("lag_offsets", "Offsets that the last batch ended behind the latest ones, over all topics and partitions.")
	queryAvgBehind     = perQuery("avg_offsets_behind_latest", "Spark's avgOffsetsBehindLatest of the source that is worst off.")
	queryMaxBehind     = perQuery("max_offsets_behind_latest", "Spark's maxOffsetsBehindLatest of the source that is worst off.")
	queryLastProgress  = perQuery("last_progress_timestamp_seconds", "Start of the last trigger that ran a batch, by Spark's clock.")
	queryLastEvent     = perQuery("last_event_timestamp_seconds", "Time of the last event: progress, idle, start or end.")
)

// perQuery is a metric of one query, which is named by source and name (by id where
// it has none): runs that follow each other are one series.
func perQuery(name, help string, labels ...string) *prometheus.Desc {
	return desc("query_"+name, help, append([]string{"source", "query"}, labels...)...)
}
