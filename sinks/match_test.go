package sinks_test

import (
	"regexp"
	"strings"
	"testing"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

func TestMatchWants(t *testing.T) {
	failed := listener.Event{Kind: listener.KindTerminated, Source: "etl", QueryID: "q-1", Name: "orders-eu", Outcome: listener.OutcomeFailed}
	stopped, unnamed, progress, bus := failed, failed, failed, listener.Event{Kind: listener.KindBus, Source: "etl"}
	stopped.Outcome = listener.OutcomeStopped
	unnamed.Name = ""
	progress.Kind, progress.Outcome = listener.KindProgress, ""
	all := []listener.Event{failed, stopped, unnamed, progress, bus}
	for name, c := range map[string]struct {
		match sinks.Match
		want  string // of failed, stopped, unnamed, progress, bus
	}{
		"all":            {sinks.Match{}, "fsupb"},
		"kinds":          {sinks.Match{Kinds: []listener.Kind{listener.KindTerminated, listener.KindBus}}, "fsu b"},
		"query":          {sinks.Match{Queries: []string{"orders-*"}}, "fsupb"},
		"other query":    {sinks.Match{Queries: []string{"clicks", "click?"}}, "  u b"},
		"query by id":    {sinks.Match{Queries: []string{"q-1"}}, "fsupb"},
		"source":         {sinks.Match{Sources: []string{"e?l"}}, "fsupb"},
		"other source":   {sinks.Match{Sources: []string{"web"}}, "     "},
		"outcome":        {sinks.Match{Outcomes: []listener.Outcome{listener.OutcomeFailed}}, "f upb"},
		"kind, outcome":  {sinks.Match{Kinds: []listener.Kind{listener.KindTerminated}, Outcomes: []listener.Outcome{listener.OutcomeStopped}}, " s   "},
		"nothing is all": {sinks.Match{Kinds: []listener.Kind{}, Queries: []string{}}, "fsupb"},
	} {
		got := ""
		for i := range all {
			if c.match.Wants(&all[i]) {
				got += "fsupb"[i : i+1]
			} else {
				got += " "
			}
		}
		if got != c.want {
			t.Errorf("%s: wants %q, want %q", name, got, c.want)
		}
	}
}

func TestMatchValidates(t *testing.T) {
	err := sinks.Match{Queries: []string{"a", ""}, Sources: []string{""}}.Validate()
	if err == nil || !strings.Contains(err.Error(), "queries[1]: is empty") || !strings.Contains(err.Error(), "sources[0]: is empty") {
		t.Errorf("Validate: %v", err)
	}
	if err := (sinks.Match{Queries: []string{"*"}}).Validate(); err != nil {
		t.Error(err)
	}
}

// Globs are held against regular expressions of the same meaning.
func FuzzGlob(f *testing.F) {
	for _, pattern := range []string{"", "*", "a*b", "**", "?", "*a?c*", "żó*", "orders-*", "[a]", "a*a*a*a*b"} {
		f.Add(pattern, "orders-eu")
		f.Add(pattern, "aaaaaaaaaaaaaaaaaaab")
		f.Add(pattern, "żółć")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 50 || len(text) > 200 || strings.ToValidUTF8(pattern, "") != pattern || strings.ToValidUTF8(text, "") != text {
			return
		}
		quoted := strings.NewReplacer(`\*`, "(?s:.*)", `\?`, "(?s:.)").Replace(regexp.QuoteMeta(pattern))
		if want := regexp.MustCompile("^" + quoted + "$").MatchString(text); sinks.Glob(pattern, text) != want {
			t.Errorf("Glob(%q, %q) = %t", pattern, text, !want)
		}
	})
}
