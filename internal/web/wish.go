package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// wish is what a client wants of the journal: events that match, from a sequence on.
type wish struct {
	sinks.Match
	from uint64
}

// parseWish reads it from a request: where to begin from Last-Event-ID, which a client
// that comes again sends, or else from since (a time, or how long ago) or last (how
// many events); now, if there is none of them.
func parseWish(r *http.Request, log Log, now time.Time) (want wish, err error) {
	q := r.URL.Query()
	if want.Match, err = parseMatch(q); err != nil {
		return want, err
	}
	first, next := log.Bounds()
	want.from = next
	switch id := r.Header.Get("Last-Event-ID"); {
	case id != "":
		want.from, err = after(id)
	case q.Get("since") != "":
		want.from, err = since(q.Get("since"), log, now)
	case q.Get("last") != "":
		want.from, err = last(q.Get("last"), first, next)
	}
	want.from = min(max(want.from, 1), next)
	return want, err
}

// after is the sequence that follows the one that a client has seen last.
func after(id string) (uint64, error) {
	n, err := strconv.ParseUint(id, 10, 64)
	if err != nil || n+1 == 0 {
		return 0, fmt.Errorf("the Last-Event-ID %q is no sequence: send the id of the last event that was read", id)
	}
	return n + 1, nil
}

func since(text string, log Log, now time.Time) (uint64, error) {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		ago, err := time.ParseDuration(text)
		if err != nil || ago < 0 {
			return 0, fmt.Errorf("since %q is neither a time nor a duration: write for example 2026-01-31T12:00:00Z or 10m", text)
		}
		at = now.Add(-ago)
	}
	from, err := log.Since(at)
	if err != nil {
		return 0, unreadable{err}
	}
	return from, nil
}

// unreadable is an error of the journal, in which the client has no part.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

func last(text string, first, next uint64) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("last %q is no number of events: write for example last=50", text)
	}
	return max(first, next-min(n, next-1)), nil
}

// parseMatch reads the filters. A kind or an outcome that does not exist is an error:
// whoever asks for it would wait for ever.
func parseMatch(q url.Values) (m sinks.Match, err error) {
	m.Queries, m.Sources = list(q["query"]), list(q["source"])
	for _, name := range list(q["kind"]) {
		kind, err := listener.ParseKind(name)
		if err != nil {
			return m, err
		}
		m.Kinds = append(m.Kinds, kind)
	}
	for _, name := range list(q["outcome"]) {
		outcome, err := listener.ParseOutcome(name)
		if err != nil {
			return m, err
		}
		m.Outcomes = append(m.Outcomes, outcome)
	}
	return m, nil
}

// list reads values that stand side by side or with commas between them.
func list(values []string) (all []string) {
	for _, v := range values {
		for one := range strings.SplitSeq(v, ",") {
			if one = strings.TrimSpace(one); one != "" {
				all = append(all, one)
			}
		}
	}
	return all
}
