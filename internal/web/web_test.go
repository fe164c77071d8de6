package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"go.uber.org/goleak"

	"sparkbridge/internal/watch"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// log is a journal in memory, of one event a minute.
type log struct {
	events []listener.Event
	first  uint64
	grown  chan struct{}
}

func newLog(n int) *log {
	l := &log{first: 1, grown: make(chan struct{})}
	for i := range n {
		l.events = append(l.events, sample(i))
	}
	return l
}

func sample(i int) listener.Event {
	return listener.Event{
		Sequence: uint64(i + 1), Recorded: noon.Add(time.Duration(i) * time.Minute), Time: noon, ID: fmt.Sprint("e", i+1),
		Kind: []listener.Kind{listener.KindProgress, listener.KindIdle}[i%2], Origin: listener.OriginBus, Source: "etl",
		QueryID: "q", RunID: "r", Name: []string{"orders", "clicks"}[i/2%2], BatchID: int64(i), Payload: []byte("{\n\"batchId\":\r\n1}"),
	}
}

func (l *log) Bounds() (first, next uint64) { return l.first, uint64(len(l.events)) + 1 }

func (l *log) Since(t time.Time) (uint64, error) {
	for _, e := range l.events {
		if !e.Recorded.Before(t) {
			return e.Sequence, nil
		}
	}
	return uint64(len(l.events)) + 1, nil
}

func (l *log) Read(from uint64) (Reader, error) { return &reader{l, from}, nil }

type reader struct {
	log  *log
	next uint64
}

func (r *reader) Next(ctx context.Context, _, _ int) ([]listener.Event, error) {
	if r.next < r.log.first {
		lost := &sinks.LostError{From: r.next, To: r.log.first - 1}
		r.next = r.log.first
		return nil, lost
	}
	if int(r.next) > len(r.log.events) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	e := r.log.events[r.next-1]
	r.next++
	return []listener.Event{e}, nil
}

func (*reader) Close() error { return nil }

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

func f(v float64) *float64 { return &v }

// whole is a status with everything in it.
func whole() watch.Status {
	return watch.Status{
		Version: "v1", Started: noon, Now: noon.Add(time.Hour),
		Sources: []watch.Source{{Name: "etl", State: "attached", Required: true, Duplicates: 3, Reattaches: map[watch.Stop]uint64{watch.StopEnd: 8}, Starts: []watch.Start{{Name: "orders", State: watch.StartFailed}, {Name: "b", State: watch.StartDone}}}},
		Sinks: []watch.Sink{{Name: "lake", Kind: "kafka", Delivered: 5, Buried: 1, DeadLetters: 6, Ambiguous: new(uint64), Pending: 2, Oldest: noon, Error: "down", Failed: 4, Stopped: true, Lost: 11,
			Failures: map[watch.Reason]uint64{watch.ReasonTimeout: 4}, Took: new(watch.Histogram).Durations()}},
		Journal: watch.Journal{First: 1, Next: 11, Bytes: 100, Segments: 1, Oldest: noon, Writes: new(watch.Histogram).Durations()},
		Queries: []watch.Query{{
			Source: "etl", Label: "orders \"é\"\n", ID: "q", RunID: "r", IsActive: true, LastProgress: noon, LastEvent: noon,
			Ended: noon, Outcome: listener.OutcomeFailed, ErrorClass: "DIVIDE_BY_ZERO", Batches: 2, Rows: 9, LateRows: 1,
			Ends: map[watch.End]uint64{{Outcome: listener.OutcomeFailed, ErrorClass: "DIVIDE_BY_ZERO"}: 1},
			Numbers: watch.Numbers{BatchID: 4, InputRows: 9, InputRate: f(1), ProcessedRate: f(2), DurationMs: map[string]float64{"addBatch": 1500},
				Watermark: noon.Add(-time.Minute), WatermarkDelay: time.Minute, StateRows: f(3), StateBytes: f(4), Lag: f(5), AvgBehind: f(6), MaxBehind: f(7)},
		}},
	}
}

func someCounts() watch.Counts {
	return watch.Counts{
		Events:  map[watch.EventKey]uint64{{Source: "etl", Kind: listener.KindProgress, Origin: listener.OriginBus}: 7},
		Ends:    map[watch.EndKey]uint64{{Source: "etl", End: watch.End{Outcome: listener.OutcomeFailed, ErrorClass: "DIVIDE_BY_ZERO"}}: 1},
		Changes: map[watch.ChangeKey]uint64{{Source: "etl", State: "lost"}: 1},
		Gaps:    map[string]uint64{"etl": 1}, Missing: map[string]uint64{"etl": 5}, Unlisted: 2,
	}
}

func newServer(st watch.Status, l Log, token string) *Server {
	return New(Options{Status: func() watch.Status { return st }, Counts: someCounts, Log: l, Token: token, Logger: discard()})
}

// get asks for a path, as localhost.
func get(s *Server, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestReadiness(t *testing.T) {
	for name, c := range map[string]struct {
		state    string
		optional bool
		journal  string
		sink     string
		want     int
	}{
		"starting":                  {"", false, "", "", 200},
		"waiting":                   {"waiting", false, "", "", 200},
		"attached":                  {"attached", false, "", "", 200},
		"taken":                     {"taken", false, "", "", 200},
		"polling":                   {"polling", false, "", "", 200},
		"closed":                    {"closed", false, "", "", 200},
		"lost":                      {"lost", false, "", "", 503},
		"lost and not required":     {"lost", true, "", "", 200},
		"journal full":              {"attached", false, "no space left on device", "", 503},
		"sick sink":                 {"attached", false, "", "connection refused by 10.0.0.7", 200},
		"not required, disk broken": {"lost", true, "broken", "", 503},
	} {
		s := newServer(watch.Status{
			Sources: []watch.Source{{Name: "other", State: "attached", Required: true}, {Name: "etl", State: c.state, Required: !c.optional, Reason: "secret reason"}},
			Sinks:   []watch.Sink{{Name: "lake", Error: c.sink}}, Journal: watch.Journal{Error: c.journal},
		}, newLog(0), "token")
		w, quiet := get(s, "/readyz?verbose"), get(s, "/readyz")
		if w.Code != c.want || quiet.Code != c.want {
			t.Errorf("%s: %d and %d, want %d\n%s", name, w.Code, quiet.Code, c.want, w.Body)
		}
		if strings.Contains(w.Body.String(), "secret") || strings.Contains(w.Body.String(), "10.0") || len(quiet.Body.String()) > 12 {
			t.Errorf("%s: says too much:\n%s%s", name, w.Body, quiet.Body)
		}
		if !strings.Contains(w.Body.String(), "] source etl: "+strings.TrimSpace(c.state)) {
			t.Errorf("%s: does not say the state:\n%s", name, w.Body)
		}
		if c.sink != "" && !strings.Contains(w.Body.String(), "[-] sink lake") {
			t.Errorf("%s: the sick sink does not show:\n%s", name, w.Body)
		}
	}
	if w := get(newServer(whole(), newLog(0), ""), "/readyz?verbose"); w.Code != 200 || !strings.Contains(w.Body.String(), "[-] sink lake: stopped by its destination, 2 events pending") {
		t.Errorf("a sink that has stopped: %d %s", w.Code, w.Body)
	}
	if w := get(newServer(whole(), newLog(0), ""), "/livez"); w.Code != 200 {
		t.Errorf("livez: %d", w.Code)
	}
}

func TestWhoMayAsk(t *testing.T) {
	open, guarded := newServer(whole(), newLog(0), ""), newServer(whole(), newLog(0), "s3cret")
	for _, path := range []string{"/", "/api/v1/status", "/api/v1/events?last=x"} {
		right := map[bool]int{true: 400, false: 200}[strings.Contains(path, "?")]
		for name, c := range map[string]struct {
			w    *httptest.ResponseRecorder
			want int
		}{
			"no token":     {get(guarded, path), 401},
			"wrong token":  {get(guarded, path, "Authorization", "Bearer s3cre"), 401},
			"empty token":  {get(guarded, path, "Authorization", "Bearer "), 401},
			"other scheme": {get(guarded, path, "Authorization", "Digest s3cret"), 401},
			"bearer":       {get(guarded, path, "Authorization", "bearer s3cret"), right},
			"basic":        {get(guarded, path, "Authorization", "Basic YW55OnMzY3JldA=="), right},
			"open":         {get(open, path), right},
		} {
			if c.w.Code != c.want {
				t.Errorf("%s, %s: %d, want %d", path, name, c.w.Code, c.want)
			}
			if c.want == 401 && !strings.HasPrefix(c.w.Header().Get("WWW-Authenticate"), "Basic ") {
				t.Errorf("%s, %s: a browser would not ask for the token", path, name)
			}
		}
		r := httptest.NewRequest(http.MethodGet, "http://evil.example"+path, nil)
		w := httptest.NewRecorder()
		open.ServeHTTP(w, r)
		if w.Code != 403 {
			t.Errorf("%s of another host's name: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/livez", "/readyz", "/metrics"} {
		if w := get(guarded, path); w.Code != 200 {
			t.Errorf("%s needs a token: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/control/v1/kept"} {
		if w := get(open, path); w.Code != 404 {
			t.Errorf("%s is on HTTP: %d", path, w.Code)
		}
	}
	for _, path := range []string{"/", "/api/v1/status", "/metrics"} {
		r := httptest.NewRequest(http.MethodGet, "http://bridge"+path, nil)
		w := httptest.NewRecorder()
		guarded.Open().ServeHTTP(w, r)
		if w.Code != 200 {
			t.Errorf("%s of the open door: %d", path, w.Code)
		}
	}
	for _, host := range []string{"localhost", "LOCALHOST:4050", "127.0.0.1:1", "[::1]:4050", "[::1]", "127.9.9.9"} {
		if !local(host) {
			t.Errorf("%s is not local", host)
		}
	}
	for _, host := range []string{"", "localhost.evil.example", "0.0.0.0", "10.0.0.1:80", "evil:localhost"} {
		if local(host) {
			t.Errorf("%s is local", host)
		}
	}
}

func TestStatus(t *testing.T) {
	w := get(newServer(whole(), newLog(0), ""), "/api/v1/status")
	var doc struct {
		Sources []struct{ Name, State string }
		Sinks   []struct {
			Name    string
			Pending int
			Error   string
		}
		Queries []struct {
			Query       string
			BatchID     int `json:"batchId"`
			IsActive    bool
			NumInputRow int `json:"numInputRows"`
		}
		Journal struct{ Next int }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Sources[0].State != "attached" || doc.Sinks[0].Pending != 2 || doc.Sinks[0].Error != "down" || doc.Queries[0].BatchID != 4 ||
		doc.Queries[0].NumInputRow != 9 || !doc.Queries[0].IsActive || doc.Journal.Next != 11 {
		t.Errorf("%+v of %s", doc, w.Body)
	}
}

func TestMetrics(t *testing.T) {
	text := get(newServer(whole(), newLog(0), ""), "/metrics").Body.String()
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "sparkbridge_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for _, want := range []string{
		`sparkbridge_build_info{version="v1"} 1`,
		`sparkbridge_source_state{source="etl",state="attached"} 1`,
		`sparkbridge_source_state{source="etl",state="lost"} 0`,
		`sparkbridge_source_duplicates_total{source="etl"} 3`,
		`sparkbridge_source_reattaches_total{after="end",source="etl"} 8`,
		`sparkbridge_source_reattaches_total{after="break",source="etl"} 0`,
		`sparkbridge_events_total{kind="progress",origin="bus",source="etl"} 7`,
		`sparkbridge_missing_batches_total{source="etl"} 5`,
		`sparkbridge_ends_total{error_class="DIVIDE_BY_ZERO",outcome="failed",source="etl"} 1`,
		`sparkbridge_sink_failures_total{reason="timeout",sink="lake",type="kafka"} 4`,
		`sparkbridge_sink_failures_total{reason="other",sink="lake",type="kafka"} 0`,
		`sparkbridge_sink_dead_letters_total{sink="lake",type="kafka"} 1`,
		`sparkbridge_sink_lost_events_total{sink="lake",type="kafka"} 11`,
		`sparkbridge_sink_stopped{sink="lake",type="kafka"} 1`,
		`sparkbridge_sink_failing{sink="lake",type="kafka"} 1`,
		`sparkbridge_sink_kept_dead_letters{sink="lake",type="kafka"} 6`,
		`sparkbridge_sink_ambiguous_events_total{sink="lake",type="kafka"} 0`,
		`sparkbridge_sink_pending_events{sink="lake",type="kafka"} 2`,
		`sparkbridge_sink_oldest_pending_age_seconds{sink="lake",type="kafka"} 3600`,
		`sparkbridge_sink_delivery_duration_seconds_bucket{sink="lake",type="kafka",le="+Inf"} 0`,
		`sparkbridge_journal_events 10`,
		`sparkbridge_query_active{query="orders \"é\"\n",source="etl"} 1`,
		`sparkbridge_query_last_batch_duration_seconds{phase="addBatch",query="orders \"é\"\n",source="etl"} 1.5`,
		`sparkbridge_query_watermark_delay_seconds{query="orders \"é\"\n",source="etl"} 60`,
		`sparkbridge_query_ends_total{error_class="DIVIDE_BY_ZERO",outcome="failed",query="orders \"é\"\n",source="etl"} 1`,
		`sparkbridge_query_lag_offsets{query="orders \"é\"\n",source="etl"} 5`,
		`sparkbridge_query_last_progress_timestamp_seconds{query="orders \"é\"\n",source="etl"} 1.7672688e+09`,
		`sparkbridge_query_last_end_timestamp_seconds{error_class="DIVIDE_BY_ZERO",outcome="failed",query="orders \"é\"\n",source="etl"} 1.7672688e+09`,
		`sparkbridge_query_start_failed{query="orders",source="etl"} 1`,
		`sparkbridge_query_start_failed{query="b",source="etl"} 0`,
		`sparkbridge_queries_unlisted_events_total 2`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no line %s", want)
		}
	}
	if t.Failed() {
		t.Log(text)
	}
}

// Every metric is in the reference, and nothing is there that does not exist.
func TestMetricsAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	served := regexp.MustCompile(`(?m)^# TYPE (sparkbridge_\w+)`).FindAllStringSubmatch(get(newServer(whole(), newLog(0), ""), "/metrics").Body.String(), -1)
	var names []string
	for _, m := range served {
		names = append(names, m[1])
		if !strings.Contains(string(doc), "| `"+m[1]+"`") {
			t.Errorf("%s is not in docs/metrics.md", m[1])
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `(sparkbridge_\\w+)`").FindAllStringSubmatch(string(doc), -1) {
		if !slices.Contains(names, m[1]) {
			t.Errorf("docs/metrics.md tells of %s, which is not served", m[1])
		}
	}
}

// A query that has said nothing yet has no numbers of batches: they would be wrong.
func TestUnknownNumbersAreLeftOut(t *testing.T) {
	st := whole()
	st.Queries = []watch.Query{{Source: "etl", Label: "q", Numbers: watch.Numbers{BatchID: listener.NoBatch}}}
	text := get(newServer(st, newLog(0), ""), "/metrics").Body.String()
	for _, name := range []string{"last_batch", "rows_per_second", "watermark", "state_", "lag", "behind", "timestamp"} {
		if strings.Contains(text, "sparkbridge_query_"+name) {
			t.Errorf("%s of a query without a batch", name)
		}
	}
}

func TestServeEndsStreams(t *testing.T) {
	door, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- newServer(whole(), newLog(1), "").Serve(ctx, door) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+door.Addr().String()+"/api/v1/events?last=1", nil)
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewReader(answer.Body)
	for line := ""; !strings.HasPrefix(line, "id: 1"); {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := io.Copy(io.Discard, lines); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the stream ended with %v", err)
	}
}
