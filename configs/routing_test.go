package configs

import (
	"reflect"
	"testing"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

const labelled = `sources:
  - name: etl
    remote: sc://spark/;user_id=etl;session_id=` + sessionA + `
    labels: {team: pay, cost_center: "12"}
sinks:
  - name: events
    nats: {url: nats://a, subject: "spark.{labels.team}", headers: {x-cc: "{labels.cost_center}"}}
`

func TestWhatASinkWants(t *testing.T) {
	cfg := parse(t, labelled+`    match: {kinds: [started, gap], queries: ["orders-*"], sources: [e*], outcomes: [failed]}
    progress_every: 30s
    max_age: 1h
    from: oldest
    format: raw
    give_up: 0s
    dead_letters: {max: 5}
`)
	s := cfg.Sinks[0]
	want := sinks.Match{
		Kinds: []listener.Kind{listener.KindStarted, listener.KindGap}, Queries: []string{"orders-*"}, Sources: []string{"e*"},
		Outcomes: []listener.Outcome{listener.OutcomeFailed},
	}
	if !reflect.DeepEqual(s.Match, want) || s.ProgressEvery != 30*time.Second || s.MaxAge != time.Hour || s.From != FromOldest ||
		s.Format != sinks.FormatRaw || s.GiveUp != 0 || s.DeadLetters.Max != 5 {
		t.Errorf("sink %+v", s)
	}
	if labels := cfg.Labels(); labels["etl"]["team"] != "pay" || labels["etl"]["cost_center"] != "12" {
		t.Errorf("labels %v", labels)
	}
	s = parse(t, good).Sinks[0]
	if s.From != FromNow || s.GiveUp != time.Hour || s.DeadLetters.Max != 10000 || s.Format != "" || !reflect.DeepEqual(s.Match, sinks.Match{}) {
		t.Errorf("defaults %+v", s)
	}
}

func TestRoutingProblems(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"kind":       {good + "    match: {kinds: [started, ended]}\n", `f:7:30: sinks[0].match.kinds[1]: "ended" is not known: use started, progress, idle, terminated, gap, bus, unknown`},
		"outcome":    {good + "    match: {outcomes: [ok]}\n", `f:7:24: sinks[0].match.outcomes[0]: "ok" is not known: use failed, stopped, session_closed, driver_lost, unknown`},
		"no pattern": {good + "    match: {queries: ['']}\n", "f:7:23: sinks[0].match.queries[0]: is empty; write a name such as orders-*, or leave it out"},
		"source":     {good + "    match: {sources: [elt]}\n", `f:7:23: sinks[0].match.sources[0]: "elt" matches no source: use the name of one, such as etl`},
		"from":       {good + "    from: then\n", `f:7:11: sinks[0].from: "then" is not known: use now or oldest`},
		"format":     {good + "    format: avro\n", `f:7:13: sinks[0].format: "avro" is not known: use binary or structured or raw`},
		"no room":    {good + "    dead_letters: {max: 0}\n", `f:7:25: sinks[0].dead_letters.max: "0" is too little: use at least 1`},
		"label":      {labelled + "  - name: two\n    nats: {url: nats://a, subject: \"{labels.tema}\"}\n", `f:9:36: sinks[1].nats.subject: "{labels.tema}" asks for {labels.tema}, which no source has: add it to the labels of the sources, or correct it`},
		"header":     {labelled + "  - name: two\n    nats: {url: nats://a, headers: {x: \"{job}\"}}\n", `f:9:40: sinks[1].nats.headers.x: template "{job}": unknown name {job}; use {source}, {query}, {kind}, {query_id}, {run_id} or {labels.name}`},
		"subject":    {labelled + "  - name: two\n    nats: {url: nats://a, subject: 'spark.{job}'}\n", `f:9:36: sinks[1].nats.subject: template "spark.{job}": unknown name {job}; use {source}, {query}, {kind}, {query_id}, {run_id} or {labels.name}`},
		"topic":      {labelled + "  - name: two\n    kafka: {brokers: ['a:1'], topic: '{querry}'}\n", `f:9:38: sinks[1].kafka.topic: template "{querry}": unknown name {querry}; use {source}, {query}, {kind}, {query_id}, {run_id} or {labels.name}`},
		"key":        {labelled + "  - name: two\n    kafka: {brokers: ['a:1'], key: '{label.team}'}\n", `f:9:36: sinks[1].kafka.key: template "{label.team}": unknown name {label.team}; use {source}, {query}, {kind}, {query_id}, {run_id} or {labels.name}`},
		"open brace": {labelled + "  - name: two\n    kafka: {brokers: ['a:1'], headers: {x: '{kind'}}\n", `f:9:44: sinks[1].kafka.headers.x: template "{kind": a { without its }; names are written {source}`},
		"label name": {"sources:\n  - {name: etl, remote: 'sc://s/;user_id=u;session_id=" + sessionA + "', labels: {a-b: x}}\nsinks:\n  - {name: n, nats: {url: nats://a}}\n",
			"f:2:108: sources[0].labels.a-b: is no name for a label: use letters, digits and _, the first no digit"},
		"label twice": {"sources:\n  - {name: etl, remote: 'sc://s/;user_id=u;session_id=" + sessionA + "', labels: {a: x, a: y}}\nsinks:\n  - {name: n, nats: {url: nats://a}}\n",
			"f:2:109: sources[0].labels.a: is given twice: keep one of them"},
		"labels as a list": {"sources:\n  - {name: etl, remote: 'sc://s/;user_id=u;session_id=" + sessionA + "', labels: [a]}\nsinks:\n  - {name: n, nats: {url: nats://a}}\n",
			"f:2:102: sources[0].labels: wants a mapping (lines of key: value), not a list"},
	} {
		t.Run(name, func(t *testing.T) { same(t, problemsOf(t, c.text, environment(nil, nil)), []string{c.want}) })
	}
}
