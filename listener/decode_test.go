package listener

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

var received = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func samples(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no samples match %s: %v", pattern, err)
	}
	return paths
}

func TestRecordedBusEventsDecode(t *testing.T) {
	types := map[string]int32{"progress": TypeProgress, "idle": TypeIdle, "terminated": TypeTerminated}
	for kind, eventType := range types {
		for _, path := range samples(t, "recorded/*/bus-"+kind+"-*.json") {
			doc := read(t, path)
			e := decode(Raw{Type: eventType, JSON: doc, ResponseID: "resp"}, received)
			if string(e.Kind) != kind || e.QueryID == "" || e.RunID == "" || e.Origin != OriginBus {
				t.Errorf("%s: %+v", path, e)
			}
			if !strings.HasPrefix(e.ID, e.RunID+":"+kind) {
				t.Errorf("%s: id %s", path, e.ID)
			}
			if kind == "progress" {
				doc = []byte(strings.TrimSuffix(strings.TrimPrefix(string(doc), `{"progress":`), "}"))
			}
			if string(e.Payload) != string(doc) {
				t.Errorf("%s: the payload was touched", path)
			}
			if (kind == "terminated") != e.Time.Equal(received) {
				t.Errorf("%s: time %s", path, e.Time)
			}
		}
	}
}

func TestTerminatedTellsFailureFromStop(t *testing.T) {
	for _, path := range samples(t, "recorded/*/bus-terminated-*.json") {
		want := OutcomeStopped
		if strings.Contains(path, "fail") {
			want = OutcomeFailed
		}
		if strings.Contains(string(read(t, path)), `"exception":null`) != (want == OutcomeStopped) {
			t.Fatalf("%s is not what its name says", path)
		}
		if e := decode(Raw{Type: TypeTerminated, JSON: read(t, path)}, received); e.Outcome != want {
			t.Errorf("%s: outcome %s, want %s", path, e.Outcome, want)
		}
	}
	// A failure without a class: a Python function's on Spark 4.0.
	e := decode(Raw{Type: TypeTerminated, JSON: []byte(`{"id":"q","runId":"r","exception":"boom","errorClassOnException":null}`)}, received)
	if e.Outcome != OutcomeFailed || e.ErrorClass != "" {
		t.Errorf("outcome %s class %q", e.Outcome, e.ErrorClass)
	}
	e = decode(Raw{Type: TypeTerminated, JSON: []byte(`{"id":"q","runId":"r","exception":"boom","errorClassOnException":"DIVIDE_BY_ZERO"}`)}, received)
	if e.ErrorClass != "DIVIDE_BY_ZERO" {
		t.Errorf("class %q", e.ErrorClass)
	}
}

func TestPublishedDocumentsDecode(t *testing.T) {
	for _, path := range samples(t, "public/*.json") {
		doc := read(t, path)
		e := decode(Raw{Type: TypeProgress, JSON: doc, ResponseID: "resp"}, received)
		broken := !json.Valid(doc)
		if strings.Contains(path, "malformed") != broken {
			t.Errorf("%s: valid JSON is %v", path, !broken)
		}
		hasRun := gjson.GetBytes(doc, "runId").Exists()
		wantProgress := !broken && hasRun && !strings.Contains(path, "started-event")
		if started := strings.Contains(path, "started-event"); started {
			continue // has no batch id, so as a progress event it would be an undated one
		}
		if (e.Kind == KindProgress) != wantProgress {
			t.Errorf("%s: kind %s", path, e.Kind)
		}
		if string(e.Payload) != string(doc) {
			t.Errorf("%s: the payload was touched", path)
		}
		if e.ID == "" || e.Time.IsZero() {
			t.Errorf("%s: %+v", path, e)
		}
	}
}

func TestWhatCannotBeReadPassesThroughAsUnknown(t *testing.T) {
	for name, r := range map[string]Raw{
		"new type":        {Type: 9, JSON: []byte(`{"id":"q","runId":"r","x":[1]}`)},
		"broken JSON":     {Type: TypeProgress, JSON: []byte(`{"progress":{"id":"q"`)},
		"not an object":   {Type: TypeIdle, JSON: []byte(`7`)},
		"idle, no time":   {Type: TypeIdle, JSON: []byte(`{"id":"q","runId":"r"}`)},
		"odd batch id":    {Type: TypeProgress, JSON: []byte(`{"progress":{"id":"q","runId":"r","batchId":"x"}}`)},
		"no run id":       {Type: TypeTerminated, JSON: []byte(`{"exception":null}`)},
		"negative number": {Type: TypeProgress, JSON: []byte(`{"progress":{"runId":"r","batchId":-4}}`)},
		"nothing":         {Type: 0, JSON: nil},
	} {
		r.ResponseID, r.Index = "resp", 2
		e := decode(r, received)
		if e.Kind != KindUnknown || !strings.HasSuffix(e.ID, fmt.Sprintf(":type%d:resp.2", r.Type)) || !e.Time.Equal(received) && r.Type != TypeIdle {
			t.Errorf("%s: %s %s %s", name, e.Kind, e.ID, e.Time)
		}
	}
	e := decode(Raw{Type: 9, JSON: []byte(`{"id":"q","runId":"r"}`), ResponseID: "resp"}, received)
	if e.ID != "r:type9:resp" || e.QueryID != "q" || string(e.Payload) != `{"id":"q","runId":"r"}` {
		t.Errorf("%+v", e)
	}
}

func TestUnknownFieldsAndLargeNumbersStay(t *testing.T) {
	doc := `{"progress":{"id":"q","runId":"r","timestamp":"2026-01-01T00:00:00.001Z","batchId":9007199254740993,"new":{"a":1.10}}}`
	e := decode(Raw{Type: TypeProgress, JSON: []byte(doc)}, received)
	if e.BatchID != 9007199254740993 || !strings.Contains(string(e.Payload), `"new":{"a":1.10}`) {
		t.Errorf("%d %s", e.BatchID, e.Payload)
	}
	if e.ID != "r:progress:9007199254740993" {
		t.Error(e.ID)
	}
}

var rates = regexp.MustCompile(`"(input|processed)RowsPerSecond":[-0-9.E]+,?`)

// Every document that Spark sent in both dialects comes out the same, but for the
// rates, which the bus of 4.1 and later rounds.
func TestRecentProgressBecomesWhatTheBusSent(t *testing.T) {
	bus := map[string]Event{}
	for _, path := range samples(t, "recorded/*/bus-progress-*.json") {
		e := decode(Raw{Type: TypeProgress, JSON: read(t, path)}, received)
		bus[e.ID] = e
	}
	pairs := 0
	for _, path := range samples(t, "recorded/*/recent_progress-*.json") {
		if strings.Contains(path, "not-on-bus") {
			continue
		}
		got, err := FromRecentProgress(read(t, path), OriginBackfill)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		want, ok := bus[got.ID]
		if !ok {
			continue
		}
		pairs++
		g, w := rates.ReplaceAllString(string(got.Payload), ""), rates.ReplaceAllString(string(want.Payload), "")
		if g != w {
			t.Errorf("%s:\n got %s\nwant %s", path, g, w)
		}
		if got.Name != want.Name || !got.Time.Equal(want.Time) || got.Origin != OriginBackfill {
			t.Errorf("%s: %+v", path, got)
		}
	}
	if pairs < 20 {
		t.Errorf("only %d documents exist in both dialects", pairs)
	}
}

func TestPublishedPairOfDialects(t *testing.T) {
	got, err := FromRecentProgress(read(t, "testdata/public/23-connect-recentprogress-jackson-dialect-infinity-strings.json"), OriginPoll)
	if err != nil {
		t.Fatal(err)
	}
	var g, w any
	if err := json.Unmarshal(got.Payload, &g); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(read(t, "testdata/public/24-connect-same-document-listener-dialect.json"), &w); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("got  %v\nwant %v", g, w)
	}
}

func TestIdleEntriesBecomeTheIdleEventsOfTheBus(t *testing.T) {
	bus := map[string]Event{}
	for _, path := range samples(t, "recorded/*/bus-idle-*.json") {
		e := decode(Raw{Type: TypeIdle, JSON: read(t, path)}, received)
		bus[e.ID] = e
	}
	pairs := 0
	for _, path := range samples(t, "recorded/*/recent_progress-*not-on-bus.json") {
		got, err := FromRecentProgress(read(t, path), OriginPoll)
		if err != nil || got.Kind != KindIdle || got.Name == "" {
			t.Errorf("%s: %v %+v", path, err, got)
			continue
		}
		if want, ok := bus[got.ID]; ok {
			pairs++
			if string(got.Payload) != string(want.Payload) {
				t.Errorf("%s: got %s want %s", path, got.Payload, want.Payload)
			}
		}
	}
	if pairs < 5 {
		t.Errorf("only %d idle entries match an idle event", pairs)
	}
}

func FuzzDecode(f *testing.F) {
	for _, pattern := range []string{"recorded/*/bus-*-1.json", "public/*.json", "recorded/*/recent_progress-*-0.json"} {
		paths, _ := filepath.Glob(filepath.Join("testdata", pattern))
		for _, path := range paths {
			b, err := os.ReadFile(path)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(int32(1), b)
		}
	}
	f.Add(int32(3), []byte(`{"id":"q","runId":"r","timestamp":"2026-01-01T00:00:00.000Z"}`))
	f.Add(int32(1), []byte(`{"runId":"r","timestamp":"2026-01-01T00:00:00Z","batchId":1,"sources":[{"inputRowsPerSecond":1e308},{"inputRowsPerSecond":1e308}]}`))
	f.Fuzz(func(t *testing.T, eventType int32, b []byte) {
		e := decode(Raw{Type: eventType, JSON: b, ResponseID: "x"}, received)
		if e.ID == "" || e.Kind == "" {
			t.Errorf("no id or kind: %+v", e)
		}
		translated, err := FromRecentProgress(b, OriginPoll)
		if err == nil && !json.Valid(translated.Payload) {
			t.Errorf("translated into no JSON: %s", translated.Payload)
		}
	})
}
