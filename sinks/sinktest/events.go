package sinktest

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"sparkbridge/listener"
)

// began is when the events of the suite happened; a fixed time, so that a repeat
// that took its time from the clock would be seen.
var began = time.Date(2026, 3, 1, 12, 0, 0, 123_000_000, time.UTC)

// stream makes the lives of several queries, mixed as a session mixes them. Ids
// are new with each call, as destinations may remember those of earlier cases.
func stream(queries, total int) []listener.Event {
	events := make([]listener.Event, 0, total)
	lives := make([]listener.Event, queries)
	for i := range lives {
		lives[i] = query(fmt.Sprintf("orders-%d", i))
	}
	for i := range total {
		events = append(events, step(lives[i%queries], i/queries, i+queries >= total))
	}
	return numbered(events)
}

// query is what the events of one run have in common.
func query(name string) listener.Event {
	return listener.Event{
		Origin: listener.OriginBus, Source: "etl", UserID: "etl", SessionID: uuid.NewString(),
		QueryID: uuid.NewString(), RunID: uuid.NewString(), Name: name, BatchID: listener.NoBatch,
	}
}

// step is the n-th event of a run: started, batches, its end.
func step(e listener.Event, n int, last bool) listener.Event {
	switch {
	case n == 0:
		e.Kind, e.Origin, e.ID = listener.KindStarted, listener.OriginInferred, e.RunID+":started:inferred"
		e.Payload = fmt.Appendf(nil, `{"id":%q,"runId":%q,"name":null}`, e.QueryID, e.RunID)
	case last:
		e.Kind, e.ID = listener.KindTerminated, e.RunID+":terminated"
		e.Outcome, e.ErrorClass = listener.OutcomeFailed, "DIVIDE_BY_ZERO"
		e.Payload = fmt.Appendf(nil, `{"id":%q,"runId":%q,"exception":"boom"}`, e.QueryID, e.RunID)
	default:
		e.Kind, e.BatchID = listener.KindProgress, int64(n-1)
		e.ID = fmt.Sprintf("%s:progress:%d", e.RunID, e.BatchID)
		e.Payload = fmt.Appendf(nil, `{"id":%q,"runId":%q,"batchId":%d,"inputRowsPerSecond":1.10}`, e.QueryID, e.RunID, e.BatchID)
	}
	return e
}

// numbered gives events their places in the journal.
func numbered(events []listener.Event) []listener.Event {
	for i := range events {
		events[i].Sequence = uint64(i + 1)
		events[i].Time = began.Add(time.Duration(i) * time.Second)
		events[i].Recorded = events[i].Time.Add(1234567 * time.Nanosecond)
	}
	return events
}

// odd makes events whose names and payloads are unusual but possible.
func odd() []listener.Event {
	names := []string{
		"", "żółć ✓ 日本 🚀", "two words", "100% \"sure\" \\ or not", "tab\tline\nbell\a", "dots.and > stars.*",
		"_", "{source}", strings.Repeat("long", 100), strings.Repeat("很", 700), "ends with space ", "e\u0301\u200d\ufffe",
	}
	payloads := []string{
		`{"big":123456789012345678901234567890,"decimal":1.10,"exponent":1E+2}`,
		"{ \"spaces\" :\n[ 1 ,\t2 ] }\n",
		`{"escapes":"\u0000\ud83d\ude00\/\"\\","dup":1,"dup":2,"":{}}`,
		`{"text":"żółć 日本 🚀 <&> \u2028"}`,
		`"only a text"`,
		"not JSON at all \x00\xff\xfe",
	}
	var events []listener.Event
	for i, name := range names {
		e := step(query(name), 1, false)
		e.Payload = []byte(payloads[i%len(payloads)])
		events = append(events, e)
	}
	return numbered(append(events, strangers()...))
}

// strangers are events that are not Spark's, or not of a kind that is known.
func strangers() []listener.Event {
	bus := listener.Event{
		ID: "etl:bus:" + uuid.NewString(), Kind: listener.KindBus, Origin: listener.OriginBridge, Source: "etl",
		BatchID: listener.NoBatch, Payload: []byte(`{"state":"attached"}`),
	}
	gap := query("orders")
	gap.Kind, gap.Origin, gap.ID = listener.KindGap, listener.OriginBridge, gap.RunID+":gap:3-5"
	gap.Payload = []byte(`{"fromBatchId":3,"toBatchId":5}`)
	unknown := query("")
	unknown.Kind, unknown.ID = listener.KindUnknown, unknown.RunID+":type9:"+uuid.NewString()
	unknown.Payload = []byte(`{"new":true}`)
	return []listener.Event{bus, gap, unknown}
}

// failure is a terminated event whose exception makes its payload size bytes
// and a few.
func failure(size int) listener.Event {
	e := step(query("heavy"), 9, true)
	line := `\tat org.apache.spark.Größe$1.apply(Größe.scala:1)\n`
	e.Payload = fmt.Appendf(nil, `{"id":%q,"runId":%q,"exception":"%s","errorClassOnException":null}`,
		e.QueryID, e.RunID, strings.Repeat(line, size/len(line)))
	return e
}

// confessed is a credential.
const confessed = "Tr0ub4dor-and-3"

// confession is a terminated event whose exception says a credential, with size bytes of
// stack before and behind it.
func confession(size int) listener.Event {
	e := step(query("careless"), 9, true)
	stack := strings.Repeat(`\tat x.Y.z(Y.scala:1)\n`, size/24)
	e.Payload = fmt.Appendf(nil, `{"id":%q,"runId":%q,"exception":"%sjdbc:postgresql://db/x?password=%s&ssl=true\n%s"}`,
		e.QueryID, e.RunID, stack, confessed, stack)
	return e
}
