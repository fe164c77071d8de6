package configs

import (
	"strings"
	"testing"
)

// Each slip is told once, at its place, with the next step.
func TestProblems(t *testing.T) {
	const secret = "hunter2"
	source := func(keys string) string {
		return "sources:\n- name: a\n  remote: sc://h/;user_id=u;session_id=" + sessionA + "\n" + keys + "sinks:\n- name: s\n  nats: {url: nats://h}\n"
	}
	sink := func(keys string) string {
		return "sources:\n- name: a\n  remote: sc://h/;user_id=u;session_id=" + sessionA + "\nsinks:\n- name: s\n" + keys
	}
	remote := func(text string) string {
		return "sources:\n- name: a\n  remote: " + text + "\nsinks:\n- name: s\n  nats: {url: nats://h}\n"
	}
	for name, c := range map[string]struct {
		text string
		want string // lines
	}{
		"empty":            {"", "f: is empty: it needs sources and sinks at least"},
		"comments only":    {"# a\n", "f: is empty: it needs sources and sinks at least"},
		"null document":    {"---\n~\n", "f: is empty: it needs sources and sinks at least"},
		"not a mapping":    {"- a\n", "f:1:1: wants a mapping (lines of key: value), not a list"},
		"two documents":    {good + "---\na: b\n", "f:7:1: holds a second document: keep one, without a line of ---"},
		"nothing in it":    {"log: {level: warn}\n", "f:1:1: sources: is required: name at least one\nf:1:1: sinks: is required: name at least one"},
		"empty lists":      {"sources: []\nsinks: []\n", "f:1:10: sources: is required: name at least one\nf:2:8: sinks: is required: name at least one"},
		"unknown key":      {good + "page: {listen: x}\n", "f:7:1: page: is an unknown key: use one of sources, journal, sinks, http, log"},
		"near key":         {good + "jurnal: {dir: x}\n", "f:7:1: jurnal: is an unknown key: did you mean journal?"},
		"a key of later":   {source("  share: {}\n"), "f:4:3: sources[0].share: is an unknown key: use one of name, remote, remote_file, token, tls, mode, attach, takeover, create_session, on_stop, poll_interval, required, detach_when_idle, labels, conf, setup, queries"},
		"odd key":          {good + "\"a\\nb\": 1\n", `f:7:1: "a\nb": is an unknown key: use one of sources, journal, sinks, http, log`},
		"key that is none": {good + "[a]: 1\n", "f:7:1: has a key that is no plain text: use one of sources, journal, sinks, http, log"},
		"merge":            {good + "<<: {log: {level: warn}}\n", "f:7:1: merges another mapping by <<, which is not supported: write the keys out"},
		"duplicate key":    {good + "log: {level: warn}\nlog: {level: info}\n", "f:8:1: log: is given twice, first on line 7: keep one of them"},
		"no value":         {good + "journal:\n", "f:7:9: journal: has no value: give it one, or leave the key out"},
		"list for mapping": {good + "log: [a]\n", "f:7:6: log: wants a mapping (lines of key: value), not a list"},
		"text for list":    {sink("  kafka: {brokers: h:1}\n"), `f:6:20: sinks[0].kafka.brokers: wants a list (lines that start with - ), not the text "h:1"`},
		"number for text":  {source("  attach: 5\n"), `f:4:11: sources[0].attach: wants a text, not the number "5": put it into quotes`},
		"unit missing":     {source("  poll_interval: 5\n"), `f:4:18: sources[0].poll_interval: wants a duration such as 5s or 1m, not the number "5": write its unit`},
		"no duration":      {source("  poll_interval: often\n"), `f:4:18: sources[0].poll_interval: "often" is not a duration: write a number and a unit such as 500ms, 5s, 1m, 168h or 7d`},
		"too often":        {source("  poll_interval: 1ms\n"), `f:4:18: sources[0].poll_interval: "1ms" is too little: use at least 100ms`},
		"no size":          {good + "journal: {max_bytes: 10 Gib}\n", `f:7:22: journal.max_bytes: "10 Gib" is not a size: write a whole number and a unit such as 500MiB or 10GiB`},
		"size too large":   {good + "journal: {max_bytes: 9999999TiB}\n", `f:7:22: journal.max_bytes: "9999999TiB" is too large for a size: write a whole number and a unit such as 500MiB or 10GiB`},
		"size too small":   {good + "journal: {max_bytes: 1KiB}\n", `f:7:22: journal.max_bytes: "1KiB" is too little: use at least 1MiB`},
		"size with point":  {good + "journal: {max_bytes: 1.5}\n", `f:7:22: journal.max_bytes: wants a size such as 10GiB, not the number "1.5"`},
		"quoted bool":      {source("  create_session: \"true\"\n"), `f:4:19: sources[0].create_session: wants true or false, not the text "true": leave the quotes out`},
		"yes":              {source("  create_session: yes\n"), `f:4:19: sources[0].create_session: wants true or false, not the text "yes"`},
		"enum":             {source("  on_stop: release\n"), `f:4:12: sources[0].on_stop: "release" is not known: use remove or keep`},
		"name":             {strings.Replace(good, "name: etl", "name: ETL_1", 1), `f:2:11: sources[0].name: "ETL_1" has another form than it may: use 1 to 32 lower-case letters, digits and -, the first no -`},
		"empty name":       {strings.Replace(good, "name: etl", `name: ""`, 1), `f:2:11: sources[0].name: is required: write for example name: etl`},
		"no name":          {strings.Replace(good, "name: events", "retry: {max: 2m}", 1), `f:5:5: sinks[0].name: is required: write for example name: events`},
		"tag":              {good + "log: {level: !!binary aaa}\n", `f:7:14: log.level: wants a text, not a value with a tag (!): put it into quotes`},

		"no remote":         {"sources:\n- name: a\nsinks:\n- name: s\n  nats: {url: nats://h}\n", "f:2:3: sources[0].remote: is missing: set it to the connection string of the session, or remote_file to a file that holds it"},
		"no scheme":         {remote("spark:15002"), "f:3:11: sources[0].remote: scheme is not sc://; write sc://host:15002"},
		"no ids":            {remote("sc://h"), "f:3:11: sources[0].remote: has no user_id and no session_id: add the job's own, as in ;user_id=etl;session_id=<UUID>, or set create_session to make a session"},
		"session no UUID":   {remote("sc://h/;user_id=u;session_id=x"), `f:3:11: sources[0].remote: session_id "x" is not a UUID; use the form 01234567-89ab-cdef-0123-456789abcdef`},
		"clear text token":  {remote("sc://h/;use_ssl=false;user_id=u;session_id=" + sessionA + "\n  token: " + secret), `f:3:11: sources[0].remote: use_ssl "false" would send the token in clear text; leave use_ssl out or set it to true`},
		"two tokens":        {remote("sc://h/;token=" + secret + ";user_id=u;session_id=" + sessionA + "\n  token: " + secret), "f:4:10: sources[0].token: a token stands in remote too: keep one of them"},
		"token is a number": {source("  token: 123456\n"), "f:4:10: sources[0].token: wants a text, not the number: put it into quotes"},
		"same name":         {source("- name: a\n  remote: sc://h/;user_id=u;session_id=" + sessionB + "\n"), `f:4:9: sources[1].name: "a" is the name of sources[0] too: give each its own`},
		"same session in other words": {source("- name: b\n  remote: sc://H:15002/;session_id=" + sessionA + ";user_id=%75\n"),
			"f:5:11: sources[1].remote: is the session of sources[0] (same server, user and session): a session has one bus, keep one of the two"},

		"no destination":   {sink(""), "f:5:3: sinks[0]: has no destination: add one of nats, kafka and webhook"},
		"typo in it":       {sink("  kafak: {}\n"), "f:6:3: sinks[0].kafak: is an unknown key: did you mean kafka?"},
		"two destinations": {sink("  nats: {url: nats://h}\n  webhook: {url: http://h}\n"), "f:5:3: sinks[0]: has nats and webhook: keep one, and make a sink of its own for the other"},
		"no url":           {sink("  nats: {jetstream: false}\n"), "f:6:9: sinks[0].nats.url: is required: write for example url: nats://localhost:4222"},
		"destination's":    {sink("  kafka: {brokers: [h], topic: t}\n"), `f:6:21: sinks[0].kafka.brokers[0]: "h" is not an address; write it as host:port`},
		"same sink name":   {sink("  nats: {url: nats://h}\n- name: s\n  nats: {url: nats://h}\n"), `f:7:9: sinks[1].name: "s" is the name of sinks[0] too: give each its own`},
		"retry":            {sink("  nats: {url: nats://h}\n  retry: {initial: 2m}\n"), "f:7:10: sinks[0].retry.max: 1m is less than initial (2m): make it at least that"},
	} {
		t.Run(name, func(t *testing.T) {
			got := problemsOf(t, c.text, environment(nil, nil))
			same(t, got, strings.Split(c.want, "\n"))
			if strings.Contains(strings.Join(got, ""), secret) {
				t.Error("a secret is shown")
			}
		})
	}
}

// A file that is no YAML is told with line and column, and the likely reason.
func TestSyntaxErrors(t *testing.T) {
	for text, want := range map[string]string{
		"log:\n  level: info\n\tformat: json\n": "f:3:1: is not YAML: found character '\t' that cannot start any token: indent with spaces, not tabs",
		"log: {level: ${A:-x}}\n":               "f:1:15: is not YAML: ',' or '}' must be specified: put ${…} into quotes inside { } and [ ]",
		"log: {level: info\nsinks: []\n":        "f:2:1: is not YAML: ',' or '}' must be specified",
		"sources:\n  - name: a: b\n":            "f:2:11: is not YAML: mapping value is not allowed in this context",
		"log: @x\n":                             "f:1:6: is not YAML: '@' is a reserved character",
		"log: *none\n":                          "f:1:6: is not YAML: an alias (*) names no anchor: put a text that begins with * into quotes",
		"log: \"\x01\"\n":                       "f: is not YAML: control characters are not allowed",
		"log: {}\n---\n[\n":                     "f:",
	} {
		got := problemsOf(t, text, environment(nil, nil))
		if len(got) == 0 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// The problems come in the order of the file, whatever found them.
func TestAllProblemsAtOnce(t *testing.T) {
	got := problemsOf(t, `log: {level: loud}
sources:
  - name: a
    remote: sc://h
    attach: ${NOPE}
    colour: red
sinks:
  - nats: {}
`, environment(nil, nil))
	same(t, got, []string{
		`f:1:14: log.level: "loud" is not known: use debug or info or warn or error`,
		`f:4:13: sources[0].remote: has no user_id and no session_id: add the job's own, as in ;user_id=etl;session_id=<UUID>, or set create_session to make a session`,
		`f:5:13: sources[0].attach: the variable NOPE is not set: set it, or give a default as in ${NOPE:-default}`,
		`f:6:5: sources[0].colour: is an unknown key: use one of name, remote, remote_file, token, tls, mode, attach, takeover, create_session, on_stop, poll_interval, required, detach_when_idle, labels, conf, setup, queries`,
		`f:8:5: sinks[0].name: is required: write for example name: events`,
		`f:8:11: sinks[0].nats.url: is required: write for example url: nats://localhost:4222`,
	})
}

func TestNearest(t *testing.T) {
	keys := []string{"name", "remote", "poll_interval"}
	for word, want := range map[string]string{
		"remot": "remote", "Remote": "remote", "poll-interval": "poll_interval", "pollInterval": "poll_interval", "naem": "name",
		"xyz": "", "labels": "", "": "", strings.Repeat("a", 1000): "",
	} {
		if got := nearest(word, keys); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
