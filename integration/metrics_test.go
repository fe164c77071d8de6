//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/segmentio/kafka-go"

	"sparkbridge/integration/servers"
	"sparkbridge/listener"
)

// web lets the bridge of a configuration serve HTTP, and returns where.
func web(t *testing.T, config settings) string {
	t.Helper()
	address := at(freePort(t))
	config["http"] = map[string]any{"listen": address}
	return "http://" + address
}

// ask gets a page.
func ask(t *testing.T, url string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(within(t, patience), http.MethodGet, url, nil)
	requireNoError(t, err)
	answer, err := http.DefaultClient.Do(request)
	requireNoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	requireNoError(t, err)
	return answer.StatusCode, string(text)
}

// metrics are values by series, as they stand in the answer.
type metrics map[string]float64

func scrape(t *testing.T, page string) metrics {
	t.Helper()
	_, text := ask(t, page+"/metrics")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	requireNoError(t, err)
	for _, p := range problems {
		t.Errorf("promlint: %s: %s", p.Metric, p.Text)
	}
	m := metrics{}
	for line := range strings.Lines(text) {
		series, value, found := strings.Cut(strings.TrimSpace(line[strings.LastIndexByte(line, '}')+1:]), " ")
		if end := strings.LastIndexByte(line, '}'); end >= 0 && !strings.HasPrefix(line, "#") {
			series, value, found = line[:end+1], strings.TrimSpace(line[end+1:]), true
		}
		if n, err := strconv.ParseFloat(value, 64); found && err == nil && strings.HasPrefix(series, "sparkbridge_") {
			m[strings.TrimPrefix(series, "sparkbridge_")] = n
		}
	}
	return m
}

// batch is what Spark's event log says of a batch, in its own dialect.
type batch struct {
	Timestamp  string             `json:"timestamp"`
	BatchID    float64            `json:"batchId"`
	DurationMs map[string]float64 `json:"durationMs"`
	EventTime  struct{ Watermark string }
	Sources    []struct {
		NumInputRows           float64 `json:"numInputRows"`
		ProcessedRowsPerSecond float64 `json:"processedRowsPerSecond"`
		InputRowsPerSecond     float64 `json:"inputRowsPerSecond"`
	}
	StateOperators []struct{ NumRowsTotal, MemoryUsedBytes float64 }
}

// batches are those of a run.
func batches(t *testing.T, s *session, run servers.Fact) (all []batch) {
	t.Helper()
	for _, e := range s.inLog() {
		if e.RunID != run.RunID || e.Kind != "progress" {
			continue
		}
		var document struct{ Progress batch }
		requireNoError(t, json.Unmarshal(e.JSON, &document))
		all = append(all, document.Progress)
	}
	return all
}

// What the metrics say is what Spark's event log says, for queries of all kinds: each
// number of each query's last batch, the counts, and the ends.
func TestMetricsAgreeWithTheEventLog(t *testing.T) {
	t.Parallel()
	const source = "metrics"
	broker := shared.kafka.get(t)
	topic := fillTopic(t, broker, source+"-source", 50)
	session := openSession(t, shared.spark42.get(t), "--fail-after", "6", "--kafka", topic)
	sink := opened(webhookSink(t, "webhook"))[0]
	config := configure(t, source, session.spark.Session(user, session.id), sink)
	page := web(t, config)
	bridge := startBridge(t, source, config)
	bridge.attached(0)
	runs := map[string]servers.Fact{}
	for _, kind := range []string{"healthy", "stateful", "failing", "odd", "kafka", "unnamed"} {
		runs[kind] = session.start(kind)
	}
	sink.awaitCount(t, "state", 8, progressOf(runs["stateful"]))
	again(t, "the failure", func() bool { return failures(session) > 0 })
	again(t, "a stream of the bus that ended", func() bool {
		return scrape(t, page)[series("source_reattaches_total", "after", "end", "source", source)] > 0
	})
	live := scrape(t, page)
	for kind, active := range map[string]float64{"healthy": 1, "failing": 0} {
		if got := live[series("query_active", "query", runs[kind].Name, "source", source)]; got != active {
			t.Errorf("query_active of %s is %v", kind, got)
		}
	}
	session.stop("healthy", "stateful", "odd", "kafka", "unnamed")
	want := session.logged()
	sink.await(t, "webhook", lacks(want))
	said := wordsOf(t, bridge, page)
	bridge.stop()

	for kind, run := range runs {
		checkQuery(t, said, source, kind, run, batches(t, session, run))
	}
	checkCounts(t, said, source, want)
	if lag, found := said[series("query_lag_offsets", "query", "kafka", "source", source)]; !found || lag != 0 {
		t.Errorf("query_lag_offsets of a query that has read its topic is %v, %v", lag, found)
	}
	for name := range said {
		for _, word := range []string{"Rate", "Kafka", topic, session.id, runs["healthy"].RunID} { // descriptions and ids
			if strings.Contains(name, word) {
				t.Errorf("%s has a label that grows", name)
			}
		}
	}
	checkStanding(t, said, source, sink, journaled(t, config.journal()))
}

// fillTopic makes a topic with so many records.
func fillTopic(t *testing.T, broker *servers.Kafka, topic string, records int) string {
	t.Helper()
	requireNoError(t, broker.CreateTopic(within(t, patience), topic, partitions))
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	writer := &kafka.Writer{Addr: kafka.TCP(broker.Brokers()[0]), Topic: topic, RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond, Transport: transport}
	messages := make([]kafka.Message, records)
	for i := range messages {
		messages[i].Value = fmt.Append(nil, i)
	}
	requireNoError(t, writer.WriteMessages(within(t, patience), messages...))
	requireNoError(t, writer.Close())
	return broker.Brokers()[0] + "/" + topic
}

// series names a series: the metric, and its labels with their values, by name.
func series(metric string, labels ...string) string {
	var pairs []string
	for i := 0; i < len(labels); i += 2 {
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(labels[i+1])
		pairs = append(pairs, labels[i]+`="`+value+`"`)
	}
	slices.Sort(pairs)
	return metric + "{" + strings.Join(pairs, ",") + "}"
}

// wordsOf is what a bridge says of itself once its numbers stand still: the sink has
// what the journal has, and the metrics have seen it.
func wordsOf(t *testing.T, bridge *bridge, page string) metrics {
	t.Helper()
	var before metrics
	again(t, "metrics that stand still", func() bool {
		now := scrape(t, page)
		maps.DeleteFunc(now, func(name string, _ float64) bool {
			return strings.Contains(name, "_age_") || strings.Contains(name, "reattaches") || strings.Contains(name, "duplicates")
		})
		still := before != nil && maps.Equal(before, now)
		before = now
		return still
	})
	return scrape(t, page)
}

// checkQuery holds the series of a query against the batches of its run.
func checkQuery(t *testing.T, said metrics, source, kind string, run servers.Fact, logged []batch) {
	t.Helper()
	name := run.Name
	if name == "" {
		name = run.ID
	}
	last, rows := logged[len(logged)-1], 0.0
	for _, b := range logged {
		rows += b.Sources[0].NumInputRows
	}
	outcome, class := "stopped", ""
	if kind == "failing" {
		outcome, class = "failed", "USER_RAISED_EXCEPTION"
	}
	want := map[string]float64{
		"query_active": 0, "query_batches_total": float64(len(logged)), "query_input_rows_total": rows, "query_last_batch_id": last.BatchID,
		"query_last_batch_input_rows": last.Sources[0].NumInputRows, "query_processed_rows_per_second": last.Sources[0].ProcessedRowsPerSecond,
		"query_input_rows_per_second":           last.Sources[0].InputRowsPerSecond,
		"query_last_progress_timestamp_seconds": seconds(t, last.Timestamp),
	}
	if kind == "stateful" {
		want["query_state_rows"], want["query_state_memory_bytes"] = last.StateOperators[0].NumRowsTotal, last.StateOperators[0].MemoryUsedBytes
		want["query_watermark_timestamp_seconds"] = seconds(t, last.EventTime.Watermark)
		want["query_watermark_delay_seconds"] = seconds(t, last.Timestamp) - seconds(t, last.EventTime.Watermark)
	}
	check := func(value float64, metric string, labels ...string) {
		t.Helper()
		tolerance := 1e-6
		if strings.HasSuffix(metric, "_per_second") {
			tolerance = 0.051 // on the bus Spark rounds them to one digit
		}
		id := series(metric, append(labels, "source", source, "query", name)...)
		if got, found := said[id]; !found || math.Abs(got-value) > tolerance {
			t.Errorf("%s is %v (there: %v), want %v", id, got, found, value)
		}
	}
	for metric, value := range want {
		check(value, metric)
	}
	check(1, "query_ends_total", "outcome", outcome, "error_class", class)
	for _, phase := range []string{"triggerExecution", "addBatch", "walCommit", "latestOffset"} {
		check(last.DurationMs[phase]/1000, "query_last_batch_duration_seconds", "phase", phase)
	}
}

func seconds(t *testing.T, text string) float64 {
	t.Helper()
	return float64(instant(t, text).UnixMilli()) / 1000
}

// checkCounts holds the counts of events against the log.
func checkCounts(t *testing.T, said metrics, source string, want []expected) {
	t.Helper()
	counted, logged := map[string]float64{}, map[string]float64{}
	for _, e := range want {
		logged[e.kind]++
	}
	for id, n := range said {
		if _, kind, found := strings.Cut(id, `events_total{kind="`); found && strings.Contains(id, `source="`+source+`"`) {
			counted[kind[:strings.IndexByte(kind, '"')]] += n
		}
	}
	delete(counted, "bus")
	if !maps.Equal(counted, logged) {
		t.Errorf("events_total by kind %v, in Spark's log %v", counted, logged)
	}
	for id, value := range map[string]float64{
		series("ends_total", "source", source, "outcome", "failed", "error_class", "USER_RAISED_EXCEPTION"): 1,
		series("ends_total", "source", source, "outcome", "stopped", "error_class", ""):                     5,
		series("source_state", "source", source, "state", "attached"):                                       1,
		series("source_state", "source", source, "state", "lost"):                                           0,
		series("gaps_total", "source", source):                                                              0,
	} {
		if said[id] != value {
			t.Errorf("%s is %v, want %v", id, said[id], value)
		}
	}
}

// checkStanding holds what is said of the sink and the journal against both.
func checkStanding(t *testing.T, said metrics, source string, s *sink, events []listener.Event) {
	t.Helper()
	delivered := said[series("sink_delivered_events_total", "sink", s.name, "type", "webhook")]
	pending, failing := series("sink_pending_events", "sink", s.name, "type", "webhook"), series("sink_failing", "sink", s.name, "type", "webhook")
	if arrivals, _ := s.all(); delivered == 0 || delivered > float64(len(arrivals)) || said[pending] != 0 || said[failing] != 0 {
		t.Errorf("%v delivered, %v pending, failing %v; %d came", delivered, said[pending], said[failing], len(arrivals))
	}
	last := said["journal_events"] // what the end of the bridge has added is not in it
	if last < delivered || last > float64(len(events)) || said["journal_size_bytes"] == 0 || said["journal_write_duration_seconds_count"] == 0 || said["journal_failing"] != 0 {
		t.Errorf("journal_events is %v, with %d in the journal; size %v, writes %v", last, len(events), said["journal_size_bytes"], said["journal_write_duration_seconds_count"])
	}
	if _, found := said[series("build_info", "version", "unknown")]; found || said[series("source_required", "source", source)] != 1 {
		t.Error("build_info or source_required is wrong")
	}
}
