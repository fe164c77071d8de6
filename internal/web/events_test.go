package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// read asks for events for a while and returns the ids that came.
func read(t *testing.T, l Log, query string, header ...string) (ids []string, raw string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/v1/events"+query, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	newServer(whole(), l, "").ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		return nil, w.Body.String()
	}
	if got := w.Header().Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
	for message := range strings.SplitSeq(w.Body.String(), "\n\n") {
		if id, _, ok := strings.Cut(strings.TrimPrefix(message, "id: "), "\n"); ok && strings.HasPrefix(message, "id: ") {
			ids = append(ids, id)
		}
	}
	return ids, w.Body.String()
}

func TestEvents(t *testing.T) {
	now := time.Since(noon).Round(time.Second)
	for name, c := range map[string]struct {
		query, last, want string
	}{
		"from now on":       {"", "", ""},
		"last":              {"?last=3", "", "6 7 8"},
		"last of too many":  {"?last=300", "", "1 2 3 4 5 6 7 8"},
		"since a time":      {"?since=2026-01-01T12:05:00Z", "", "6 7 8"},
		"since then":        {"?since=" + (now - 6*time.Minute - 30*time.Second).String(), "", "8"},
		"resume":            {"", "5", "6 7 8"},
		"resume padded":     {"", "00000000000000000005", "6 7 8"},
		"resume wins":       {"?last=8", "7", "8"},
		"resume from ahead": {"", "900", ""},
		"kind":              {"?last=8&kind=idle", "", "2 4 6 8"},
		"kinds":             {"?last=8&kind=idle,progress", "", "1 2 3 4 5 6 7 8"},
		"kinds side":        {"?last=4&kind=idle&kind=progress", "", "5 6 7 8"},
		"query":             {"?last=8&query=ord*", "", "1 2 5 6"},
		"query by id":       {"?last=2&query=q", "", "7 8"},
		"resume the start":  {"", "0", "1 2 3 4 5 6 7 8"},
		"outcome":           {"?last=4&outcome=failed", "", "5 6 7 8"}, // none of them is an end
		"source":            {"?last=8&source=other", "", ""},
		"all filters":       {"?last=8&source=etl&query=clicks&kind=progress", "", "3 7"},
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Until(noon.Add(now)))
			var header []string
			if c.last != "" {
				header = []string{"Last-Event-ID", c.last}
			}
			ids, raw := read(t, newLog(8), c.query, header...)
			if got := strings.Join(ids, " "); got != c.want {
				t.Errorf("%s: %q, want %q\n%s", name, got, c.want, raw)
			}
		})
	}
}

func TestEventsRefuseNonsense(t *testing.T) {
	for query, want := range map[string]string{
		"?kind=failed": "use started, progress", "?outcome=started": "use failed, stopped",
		"?last=-1": "last", "?last=x": "last=50", "?since=soon": "10m", "?since=-5m": "10m",
	} {
		if ids, answer := read(t, newLog(1), query); ids != nil || !strings.Contains(answer, want) {
			t.Errorf("%s: %v, %q", query, ids, answer)
		}
	}
	if _, answer := read(t, newLog(1), "", "Last-Event-ID", "abc"); !strings.Contains(answer, "Last-Event-ID") {
		t.Errorf("%q", answer)
	}
}

// broken is a journal of which nothing can be found, or nothing be read.
type broken struct {
	*log
	find, read error
}

func (b broken) Since(time.Time) (uint64, error) { return 1, b.find }

func (b broken) Read(uint64) (Reader, error) { return nil, b.read }

// That the journal cannot be read is no fault of the client's, who is told no paths.
func TestAJournalThatCannotBeRead(t *testing.T) {
	gone := errors.New("open /var/lib/bridge/00001.log: input/output error")
	for _, l := range []broken{{newLog(1), gone, nil}, {newLog(1), nil, gone}} {
		w := get(newServer(whole(), l, ""), "/api/v1/events?since=1h")
		if body := w.Body.String(); w.Code != http.StatusInternalServerError || strings.Contains(body, "/var/lib") || !strings.Contains(body, "the journal cannot be read") {
			t.Errorf("%d %s", w.Code, body)
		}
	}
}

// An event is one CloudEvent, whose lines come together again as they were.
func TestTheFormOfAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, raw := read(t, newLog(1), "?last=1")
		var data []string
		for line := range strings.SplitSeq(raw, "\n") {
			if text, ok := strings.CutPrefix(line, "data: "); ok {
				data = append(data, text)
			}
		}
		var doc struct {
			ID, Type, Subject string
			Data              struct{ BatchID int }
		}
		if err := json.Unmarshal([]byte(strings.Join(data, "\n")), &doc); err != nil {
			t.Fatalf("%v in %s", err, raw)
		}
		if doc.ID != "e1" || doc.Subject != "orders" || doc.Data.BatchID != 1 || !strings.Contains(raw, "event: progress\n") {
			t.Errorf("%+v of %s", doc, raw)
		}
	})
}

// What retention took away is told, and the stream goes on behind it.
func TestLostEventsAreTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(8)
		l.first = 5
		ids, raw := read(t, l, "", "Last-Event-ID", "2")
		if !strings.Contains(raw, "event: lost\ndata: {\"from\":3,\"to\":4}\n\n") || strings.Join(ids, " ") != "5 6 7 8" {
			t.Errorf("%v\n%s", ids, raw)
		}
	})
}

// A stream begins with the place that it starts from, so that a client which has got
// nothing yet misses nothing when it comes again.
func TestAStreamTellsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if _, raw := read(t, newLog(8), ""); !strings.HasPrefix(raw, ": events of the journal\nid: 8\n\n") {
			t.Errorf("%q", raw)
		}
	})
}

// A client that comes again with the last id that it has read misses nothing and gets
// nothing twice.
func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLog(20)
		var all []string
		last := "0"
		for range 5 {
			ids, _ := read(t, l, "", "Last-Event-ID", last)
			all = append(all, ids[:4]...) // the connection breaks after four
			last = ids[3]
		}
		for i, id := range all {
			if id != fmt.Sprint(i+1) {
				t.Fatalf("%v", all)
			}
		}
	})
}

func TestSilenceIsBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 4*beat+time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		newServer(whole(), newLog(0), "").ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/v1/events", nil))
		if n := strings.Count(w.Body.String(), "\n:\n"); n != 4 {
			t.Errorf("%d signs of life in a minute, want 4: %q", n, w.Body)
		}
	})
}
