package sinks_test

import (
	"slices"
	"testing"

	"sparkbridge/sinks"
)

func TestPatternsOfSources(t *testing.T) {
	for text, want := range map[string][]string{
		"spark-query-events":                       {"spark-query-events"},
		"spark.{source}.{query}.{kind}":            {"spark.etl.*.*", "spark.etl-2.*.*"},
		"events-{source}":                          {"events-etl", "events-etl-2"},
		"{query}":                                  {"*"},
		"a.q-{query_id}-{run_id}.{source}{source}": {"a.q-*-*.etletl", "a.q-*-*.etl-2etl-2"},
	} {
		template, err := sinks.ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := template.Patterns([]string{"etl", "etl-2"}); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
