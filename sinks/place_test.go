package sinks_test

import (
	"regexp"
	"strings"
	"testing"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

func TestToken(t *testing.T) {
	long := strings.Repeat("n", 128)
	for in, want := range map[string]string{
		"": "_", "_": "_", "orders-1_X": "orders-1_X", long: long,
		// The digits are those of: printf '%s' NAME | sha256sum | cut -c1-6
		"a.b": "a_b-2e7336", "a b": "a_b-c8687a", "żółć": "____-47ff00", "orders.>": "orders__-7d48e2",
		long + "n": long[:121] + "-0bf291",
	} {
		if got := sinks.Token(in); got != want {
			t.Errorf("Token(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestTemplatePlaces(t *testing.T) {
	query := listener.Event{Source: "etl", Name: "my orders", QueryID: "q-1", RunID: "r-1", Kind: listener.KindIdle}
	nameless := query
	nameless.Name = ""
	bus := listener.Event{Source: "etl", Kind: listener.KindBus}
	for _, c := range []struct {
		template string
		event    listener.Event
		want     string
	}{
		{"spark.{source}.{query}.{kind}", query, "spark.etl." + sinks.Token("my orders") + ".idle"},
		{"spark.{source}.{query}.{kind}", nameless, "spark.etl.q-1.idle"},
		{"spark.{source}.{query}.{kind}", bus, "spark.etl._.bus"},
		{"{query_id}{run_id}", query, "q-1r-1"},
		{"{run_id}-x", bus, "_-x"},
		{"spark-query-events", query, "spark-query-events"},
	} {
		tpl, err := sinks.ParseTemplate(c.template)
		if err != nil {
			t.Fatal(err)
		}
		if got := tpl.Place(&c.event); got != c.want {
			t.Errorf("%s: %q, want %q", c.template, got, c.want)
		}
		if tpl.String() != c.template || tpl.Fixed() == strings.Contains(c.template, "{") {
			t.Errorf("%s: String %q, Fixed %t", c.template, tpl, tpl.Fixed())
		}
	}
}

func TestTemplateErrorsNameWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"":                   "template is empty",
		"spark.{querry}":     `template "spark.{querry}": unknown name {querry}; use {source}, {query}, {kind}, {query_id}, {run_id} or {labels.name}`,
		"spark.{labels.}":    "unknown name {labels.}",
		"spark.{}":           "unknown name {}",
		"spark.{source":      `template "spark.{source": a { without its }`,
		"spark.source}.x":    "a } without its {",
		"{source}}":          "a } without its {",
		"{{source}}":         "unknown name {{source}",
		"{Source}.{ source}": "unknown name {Source}",
	} {
		if _, err := sinks.ParseTemplate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseTemplate(%q): %v, want %q", text, err, want)
		}
	}
}

var token = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)

func FuzzToken(f *testing.F) {
	for _, seed := range []string{"", "orders", "a.b", "\xff", strings.Repeat("é", 500)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := sinks.Token(name)
		if !token.MatchString(got) {
			t.Errorf("Token(%q) = %q", name, got)
		}
		if token.MatchString(name) && got != name {
			t.Errorf("Token(%q) = %q, although the name is fine", name, got)
		}
	})
}

func TestTemplatesKnowLabels(t *testing.T) {
	tpl, err := sinks.ParseTemplate("spark.{labels.team}.{source}.{query}")
	if err != nil {
		t.Fatal(err)
	}
	labels := sinks.Labels{"etl": {"team": "pay & bill"}, "web": nil}
	with := tpl.With(labels)
	etl, web := listener.Event{Source: "etl", Name: "a b"}, listener.Event{Source: "web"}
	if got, want := with.Place(&etl), "spark."+sinks.Token("pay & bill")+".etl."+sinks.Token("a b"); got != want {
		t.Errorf("place %q, want %q", got, want)
	}
	if got, want := with.Text(&etl), "spark.pay & bill.etl.a b"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if got := with.Place(&web); got != "spark._.web._" {
		t.Errorf("place without the label %q", got)
	}
	if got, want := with.Pattern("etl"), "spark."+sinks.Token("pay & bill")+".etl.*"; got != want {
		t.Errorf("pattern %q, want %q", got, want)
	}
	if got := tpl.Place(&etl); !strings.HasPrefix(got, "spark._.") {
		t.Errorf("With changed the template itself: %q", got)
	}
	if names := tpl.LabelNames(); len(names) != 1 || !labels.Has(names[0]) || labels.Has("other") {
		t.Errorf("labels %q", names)
	}
}
