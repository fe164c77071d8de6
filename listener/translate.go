package listener

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// FromRecentProgress reads one document of recent_progress or last_progress as
// the event that the bus would have carried: a progress event in the dialect of
// the bus, or an idle event where the document is an idle entry. Numbers keep
// their text and unknown fields stay.
//
// Spark writes these documents with another serializer than the bus: offsets as
// JSON in strings, "NaN" and "Infinity" as strings, empty maps, observed metrics
// as values beside a schema, and no totals over the sources. The bus leaves out
// what is empty or not finite and sorts the keys of the maps.
func FromRecentProgress(document []byte, origin Origin) (Event, error) {
	if !gjson.ValidBytes(document) || !gjson.ParseBytes(document).IsObject() {
		return Event{}, errors.New("decode recent progress: not a JSON object")
	}
	e := Event{Origin: origin, BatchID: NoBatch, Payload: document}
	if isIdleEntry(document) {
		e.Payload = idlePayload(document)
		decodeIdle(&e)
		e.Name = text(gjson.GetBytes(document, "name"))
	} else {
		decodeProgress(&e)
		e.Payload = translate(document)
	}
	if e.Kind == "" || e.RunID == "" || e.Time.IsZero() {
		return Event{}, fmt.Errorf("decode recent progress: no runId, batchId or timestamp in %.200q", document)
	}
	return e, nil
}

// isIdleEntry recognises the trace of an idle trigger: it carries the id of the
// batch to come, which the real batch has again, and no batch ran in it.
func isIdleEntry(document []byte) bool {
	if gjson.GetBytes(document, "durationMs.addBatch").Exists() {
		return false
	}
	return rows(gjson.GetBytes(document, "sources")) == 0 &&
		gjson.GetBytes(document, "durationMs.triggerExecution").Exists()
}

// idlePayload writes the idle event of an idle entry as the bus does.
func idlePayload(document []byte) []byte {
	var out object
	for _, key := range []string{"id", "runId", "timestamp"} {
		if v := gjson.GetBytes(document, key); v.Exists() {
			out.add(strconv.Quote(key), v.Raw)
		}
	}
	return out.close()
}

// translate rewrites a progress document into the dialect of the bus.
func translate(document []byte) []byte {
	doc := gjson.ParseBytes(document)
	sources, summed := doc.Get("sources"), doc.Get("numInputRows").Exists()
	var out object
	doc.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "durationMs", "eventTime":
			out.addMap(key.Raw, sortedMap(value))
		case "stateOperators":
			out.add(key.Raw, each(value, stateOperator))
		case "sources":
			out.add(key.Raw, each(value, source))
		case "sink":
			out.add(key.Raw, withoutEmptyMetrics(value))
		case "observedMetrics":
			out.addMap(key.Raw, observed(value))
		default:
			out.add(key.Raw, value.Raw)
		}
		if !summed && key.Str == totalsFollow(doc) {
			addTotals(&out, sources)
		}
		return true
	})
	return out.close()
}

// totalsFollow names the field after which the bus has the totals; Spark before
// 3.1 has no batchDuration.
func totalsFollow(doc gjson.Result) string {
	if doc.Get("batchDuration").Exists() {
		return "batchDuration"
	}
	return "batchId"
}

// addTotals adds what the bus sums over the sources; a total that is not finite
// is left out, as the bus does.
func addTotals(out *object, sources gjson.Result) {
	out.add(`"numInputRows"`, strconv.FormatInt(rows(sources), 10))
	for _, key := range []string{"inputRowsPerSecond", "processedRowsPerSecond"} {
		if sum := total(sources, key); finite(sources, key) && !math.IsInf(sum, 0) {
			out.add(strconv.Quote(key), rate(sum))
		}
	}
}

func rows(sources gjson.Result) (sum int64) {
	sources.ForEach(func(_, s gjson.Result) bool {
		sum += s.Get("numInputRows").Int()
		return true
	})
	return sum
}

func total(sources gjson.Result, key string) (sum float64) {
	sources.ForEach(func(_, s gjson.Result) bool {
		sum += s.Get(key).Num
		return true
	})
	return sum
}

// finite says that every source has the rate as a number.
func finite(sources gjson.Result, key string) bool {
	ok := true
	sources.ForEach(func(_, s gjson.Result) bool {
		ok = s.Get(key).Type == gjson.Number
		return ok
	})
	return ok
}

// rate prints a double as Java does for the usual sizes: always with a fraction.
func rate(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// source parses the offsets and leaves out what the bus leaves out.
func source(s gjson.Result) string {
	var out object
	s.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "startOffset", "endOffset", "latestOffset":
			out.add(key.Raw, offset(value))
		case "inputRowsPerSecond", "processedRowsPerSecond":
			if value.Type == gjson.Number {
				out.add(key.Raw, value.Raw)
			}
		case "metrics":
			out.addMap(key.Raw, sortedMap(value))
		default:
			out.add(key.Raw, value.Raw)
		}
		return true
	})
	return string(out.close())
}

// offset is the JSON inside the string; a string that holds none stays a string,
// as on the bus.
func offset(v gjson.Result) string {
	if v.Type == gjson.String && gjson.Valid(v.Str) {
		return v.Str
	}
	return v.Raw
}

// stateOperator sorts the custom metrics. snapshotCustomMetricNames is a field
// of the serializer's, not of the document.
func stateOperator(s gjson.Result) string {
	var out object
	s.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "customMetrics":
			out.addMap(key.Raw, sortedMap(value))
		case "snapshotCustomMetricNames":
		default:
			out.add(key.Raw, value.Raw)
		}
		return true
	})
	return string(out.close())
}

func withoutEmptyMetrics(sink gjson.Result) string {
	if !sink.IsObject() {
		return sink.Raw
	}
	var out object
	sink.ForEach(func(key, value gjson.Result) bool {
		if key.Str == "metrics" {
			out.addMap(key.Raw, sortedMap(value))
		} else {
			out.add(key.Raw, value.Raw)
		}
		return true
	})
	return string(out.close())
}

// each rewrites the elements of a list; what is no list stays.
func each(list gjson.Result, rewrite func(gjson.Result) string) string {
	if !list.IsArray() {
		return list.Raw
	}
	out := []byte{'['}
	list.ForEach(func(_, v gjson.Result) bool {
		if len(out) > 1 {
			out = append(out, ',')
		}
		if v.IsObject() || v.IsArray() {
			out = append(out, rewrite(v)...)
		} else {
			out = append(out, v.Raw...)
		}
		return true
	})
	return string(append(out, ']'))
}

// sortedMap sorts a map by its keys; what is no map stays.
func sortedMap(m gjson.Result) string {
	if !m.IsObject() {
		return m.Raw
	}
	type entry struct{ key, raw, value string }
	var entries []entry
	m.ForEach(func(key, value gjson.Result) bool {
		entries = append(entries, entry{key.Str, key.Raw, value.Raw})
		return true
	})
	slices.SortStableFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	var out object
	for _, e := range entries {
		out.add(e.raw, e.value)
	}
	return string(out.close())
}
