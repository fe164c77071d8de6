package listener

import (
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func decoded(t *testing.T, name string) *Progress {
	t.Helper()
	document, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	p, err := DecodeProgress(document)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return p
}

// Both dialects tell the same of one batch, except for what the bus leaves out.
func TestBothDialectsDecodeAlike(t *testing.T) {
	recent, err := filepath.Glob("testdata/recorded/*/recent_progress-*.json")
	if err != nil || len(recent) == 0 {
		t.Fatalf("no recorded documents: %v", err)
	}
	compared := 0
	for _, file := range recent {
		document, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeProgress(document)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if got.Idle() != strings.Contains(file, "not-on-bus") {
			t.Errorf("%s: Idle = %v", file, got.Idle())
			continue
		}
		e, err := FromRecentProgress(document, OriginPoll)
		if err != nil || e.Kind != KindProgress {
			continue
		}
		want, err := DecodeProgress(append(append([]byte(`{"progress":`), e.Payload...), '}'))
		if err != nil {
			t.Fatalf("%s as on the bus: %v", file, err)
		}
		withoutNonFinite(got)
		got.Raw, want.Raw = nil, nil
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n%+v, on the bus\n%+v", file, got, want)
		}
		compared++
	}
	if compared < 5 {
		t.Errorf("only %d documents were compared", compared)
	}
}

// withoutNonFinite leaves out what the bus leaves out.
func withoutNonFinite(p *Progress) {
	numbers := []**float64{&p.InputRowsPerSecond, &p.ProcessedRowsPerSecond}
	for i := range p.Sources {
		numbers = append(numbers, &p.Sources[i].InputRowsPerSecond, &p.Sources[i].ProcessedRowsPerSecond)
	}
	for _, n := range numbers {
		if *n != nil && (math.IsNaN(**n) || math.IsInf(**n, 0)) {
			*n = nil
		}
	}
}

func TestDecodeProgress(t *testing.T) {
	document := `{"progress":{"id":"q","runId":"r","name":null,"timestamp":"2026-11-01T10:00:00.250Z","batchId":7,"batchDuration":120,
		"numInputRows":12,"inputRowsPerSecond":3.5,
		"durationMs":{"addBatch":80,"triggerExecution":120},
		"eventTime":{"watermark":"2026-11-01T09:59:00.000Z"},
		"stateOperators":[{"operatorName":"dedupe","numRowsTotal":9007199254740993,"customMetrics":{"hits":2}}],
		"sources":[{"description":"KafkaV2[Subscribe[orders]]","startOffset":{"orders":{"0":1}},"endOffset":{"orders":{"0":13}},"latestOffset":null,"numInputRows":12,"metrics":{"avgOffsetsBehindLatest":"0.5"}}],
		"sink":{"description":"x","numOutputRows":-1},
		"observedMetrics":{"m":{"rows":12}},"new":1}}`
	p, err := DecodeProgress([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	if p.ID != "q" || p.RunID != "r" || p.Name != "" || p.BatchID != 7 || *p.BatchDuration != 120 || *p.NumInputRows != 12 {
		t.Errorf("%+v", p)
	}
	if !p.Timestamp.Equal(time.Date(2026, 11, 1, 10, 0, 0, 250e6, time.UTC)) || !p.EventTime.Watermark.Equal(time.Date(2026, 11, 1, 9, 59, 0, 0, time.UTC)) || !p.EventTime.Max.IsZero() {
		t.Errorf("times %v, %+v", p.Timestamp, p.EventTime)
	}
	if *p.InputRowsPerSecond != 3.5 || p.ProcessedRowsPerSecond != nil {
		t.Errorf("rates %v, %v: one is known and one is missing", p.InputRowsPerSecond, p.ProcessedRowsPerSecond)
	}
	if s := p.Sources[0]; string(s.EndOffset) != `{"orders":{"0":13}}` || s.LatestOffset != nil || s.Metrics["avgOffsetsBehindLatest"] != "0.5" {
		t.Errorf("source %+v", s)
	}
	if s := p.StateOperators[0]; *s.NumRowsTotal != 9007199254740993 || s.MemoryUsedBytes != nil || s.CustomMetrics["hits"] != 2 {
		t.Errorf("state operator %+v", s)
	}
	if p.Sink.NumOutputRows != nil || string(p.ObservedMetrics["m"]) != `{"rows":12}` || p.DurationMs["addBatch"] != 80 {
		t.Errorf("sink %+v, observed %s, durations %v", p.Sink, p.ObservedMetrics, p.DurationMs)
	}
	if !strings.HasPrefix(string(p.Raw), `{"id":"q"`) || !strings.Contains(string(p.Raw), `"new":1`) {
		t.Errorf("raw %s", p.Raw)
	}
}

// What the serializer of recent_progress writes as text is a number, and told apart from
// what is missing.
func TestDecodeNumbersThatAreNotFinite(t *testing.T) {
	p, err := DecodeProgress([]byte(`{"id":"q","runId":"r","timestamp":"2026-11-01T10:00:00.000Z","batchId":0,
		"sources":[{"startOffset":null,"endOffset":"{\"orders\":{\"0\":13}}","numInputRows":1,"inputRowsPerSecond":"NaN","processedRowsPerSecond":"Infinity"},
		{"endOffset":"12","numInputRows":2,"inputRowsPerSecond":1.0,"processedRowsPerSecond":"-Infinity"}],
		"observedMetrics":{"m":{"values":[3],"schema":{"fields":[{"name":"rows","type":"long"}]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	first, second := p.Sources[0], p.Sources[1]
	if !math.IsNaN(*first.InputRowsPerSecond) || !math.IsInf(*first.ProcessedRowsPerSecond, 1) || !math.IsInf(*second.ProcessedRowsPerSecond, -1) {
		t.Errorf("sources %+v, %+v", first, second)
	}
	if *p.NumInputRows != 3 || !math.IsNaN(*p.InputRowsPerSecond) || !math.IsNaN(*p.ProcessedRowsPerSecond) {
		t.Errorf("totals %v, %v, %v", *p.NumInputRows, *p.InputRowsPerSecond, *p.ProcessedRowsPerSecond)
	}
	if first.StartOffset != nil || string(first.EndOffset) != `{"orders":{"0":13}}` || string(second.EndOffset) != "12" {
		t.Errorf("offsets %s, %s", first.EndOffset, second.EndOffset)
	}
	if string(p.ObservedMetrics["m"]) != `{"rows":3}` {
		t.Errorf("observed %s", p.ObservedMetrics["m"])
	}
}

func TestDecodeProgressOfManySparks(t *testing.T) {
	if p := decoded(t, "public/31-spark21-filestream-hdfs-no-batchid-2017.json"); p.BatchID != NoBatch || p.BatchDuration != nil {
		t.Errorf("Spark 2.1: %+v", p)
	}
	files, err := filepath.Glob("testdata/public/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		document, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := DecodeProgress(document)
		switch malformed := strings.Contains(file, "malformed"); {
		case malformed && err == nil:
			t.Errorf("%s was taken", file)
		case !malformed && err != nil:
			t.Errorf("%s: %v", file, err)
		case err == nil && p.RunID == "":
			t.Errorf("%s: no run id", file)
		}
	}
	for _, document := range []string{"", "[]", "null", `{"id":"q"}`, `{"progress":{}}`} {
		if p, err := DecodeProgress([]byte(document)); err == nil {
			t.Errorf("%q was taken as %+v", document, p)
		}
	}
}
