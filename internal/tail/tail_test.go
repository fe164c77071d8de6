package tail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sparkbridge/internal/lines"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const failed = `{"type":"org.apache.spark.sql.streaming.query.terminated","subject":"pay\u001b[2Jments","time":"2026-01-02T12:00:00Z",
"sparkoutcome":"failed","data":{"exception":"boom\n\tat x"}}`

func TestPrint(t *testing.T) {
	var text, coloured, doc strings.Builder
	for _, p := range []*Printer{{W: &text}, {W: &coloured, Colours: true, Width: 45}, {W: &doc, JSON: true}} {
		if err := p.Print([]byte(failed)); err != nil {
			t.Fatal(err)
		}
		if p.Print([]byte("{")) == nil {
			t.Error("nonsense was printed")
		}
	}
	if got := text.String(); !strings.HasSuffix(got, ":00:00 terminated pay [2Jments             failed: boom\n") {
		t.Errorf("%q", got)
	}
	if got := coloured.String(); !strings.Contains(got, lines.Paint(lines.Red, "failed: boom")) || strings.Contains(got, "[2J\x1b") {
		t.Errorf("%q", got)
	}
	if got := doc.String(); got != strings.ReplaceAll(failed, "\n", "")+"\n" {
		t.Errorf("%q", got)
	}
}

// What is not known has any form, and ends nothing.
func TestPrintWhatIsNotKnown(t *testing.T) {
	for _, data := range []string{`{"state":1}`, `"text"`, `[1]`, `null`} {
		var text strings.Builder
		event := `{"type":"org.apache.spark.sql.streaming.query.unknown","subject":"orders","time":"2026-01-02T12:00:00Z","data":` + data + `}`
		if err := (&Printer{W: &text}).Print([]byte(event)); err != nil || !strings.Contains(text.String(), ":00:00 unknown    orders") {
			t.Errorf("%s: %v, %q", data, err, &text)
		}
	}
}

func TestClock(t *testing.T) {
	now := time.Date(2026, 3, 4, 0, 30, 0, 0, time.Local)
	for at, want := range map[time.Time]string{
		now.Add(-time.Minute): "00:29:00",
		now.Add(-time.Hour):   "2026-03-03 23:30:00",
		now.AddDate(-1, 0, 0): "2025-03-04 00:30:00",
		now.UTC():             "00:30:00",
	} {
		if got := clock(at, now); got != want {
			t.Errorf("%s is shown as %s, want %s", at, got, want)
		}
	}
}

// api is a bridge whose connections break after two events each, in all kinds of ways.
type api struct {
	t     *testing.T
	total int
	calls int
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer s3cret" || r.URL.Query().Get("kind") != "progress" || r.URL.Path != "/api/v1/events" {
		http.Error(w, "send the token", http.StatusUnauthorized)
		return
	}
	a.calls++
	from := 0
	if _, err := fmt.Sscan(r.Header.Get("Last-Event-ID"), &from); err != nil && a.calls > 1 {
		a.t.Errorf("call %d comes without the last id", a.calls)
	}
	fmt.Fprintf(w, ": hello\nid: %d\n\n", from)
	for i := from + 1; i <= min(from+2, a.total); i++ {
		fmt.Fprintf(w, "id: %d\nevent: progress\ndata: {\"n\":\ndata: %d}\n\n:\n\n", i, i)
	}
	fmt.Fprint(w, "event: lost\ndata: {\"from\":1,\"to\":2}\n\nid: 99\ndata: cut sho")
}

func TestFollow(t *testing.T) {
	handler := &api{t: t, total: 6}
	server := httptest.NewServer(handler)
	defer server.Close()
	var logged strings.Builder
	b := &Bridge{URL: server.URL + "/", Token: "s3cret", Query: url.Values{"kind": {"progress"}}, HTTP: server.Client(), Log: slog.New(slog.NewTextHandler(&logged, nil))}
	ctx, stop := context.WithCancel(t.Context())
	var got []string
	err := b.Follow(ctx, func(event []byte) error {
		got = append(got, string(event))
		if len(got) == handler.total {
			stop()
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for i, event := range got {
		if event != fmt.Sprintf("{\"n\":\n%d}", i+1) {
			t.Errorf("event %d is %q", i+1, event)
		}
	}
	if handler.calls != 3 || !strings.Contains(logged.String(), "deleted by retention") {
		t.Errorf("%d calls; log: %s", handler.calls, &logged)
	}
}

func TestFollowEnds(t *testing.T) {
	server := httptest.NewServer(&api{t: t, total: 1})
	defer server.Close()
	b := &Bridge{URL: server.URL, Query: url.Values{"kind": {"progress"}}, HTTP: server.Client(), Log: slog.New(slog.DiscardHandler)}
	var refused *RefusedError
	if err := b.Follow(t.Context(), nil); !errors.As(err, &refused) || refused.Status != 401 || !strings.Contains(err.Error(), "send the token") {
		t.Errorf("without the token: %v", err)
	}
	b.Token = "s3cret"
	full := errors.New("disk full")
	if err := b.Follow(t.Context(), func([]byte) error { return full }); !errors.Is(err, full) {
		t.Errorf("take failed: %v", err)
	}
	server.Close()
	if err := b.Follow(t.Context(), nil); err == nil {
		t.Error("no bridge at first, and no error")
	}
}

func FuzzReadStream(f *testing.F) {
	f.Add("id: 1\nevent: progress\ndata: {}\n\n")
	f.Add("data\ndata:\n\n\r\n:x")
	f.Fuzz(func(t *testing.T, text string) {
		n := 0
		err := readStream(strings.NewReader(text), func() { n++ }, func(m message) error {
			if len(m.data) > len(text) {
				t.Errorf("%q of %q", m.data, text)
			}
			return nil
		})
		if !errors.Is(err, io.ErrUnexpectedEOF) || n > len(text) {
			t.Errorf("%v after %d lines", err, n)
		}
	})
}
