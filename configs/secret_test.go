package configs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// No way of printing shows what must not be shown.
func TestSecretsStayHidden(t *testing.T) {
	const hidden = "hunter2"
	const signing = "whsec_hunter2hunter2hunter2hunter2hunter2a" // base64 that shows when it is not hidden
	remote := "sc://h/;user_id=etl;session_id=" + sessionA + ";token=" + hidden + ";x-key=" + hidden
	cfg := parse(t, `
sources:
  - {name: a, remote: "`+remote+`"}
  - {name: b, remote: "sc://h/;user_id=b;session_id=`+sessionA+`", token: `+hidden+`}
sinks:
  - {name: n, nats: {url: "nats://u:`+hidden+`@a:1,`+hidden+`@b:2"}}
  - {name: w, webhook: {url: "https://u:`+hidden+`@h/`+hidden+`?k=`+hidden+`"}}
  - {name: n2, nats: {url: nats://h, token: `+hidden+`}}
  - {name: n3, nats: {url: nats://h, user: u, password: `+hidden+`}}
  - {name: k, kafka: {brokers: [localhost:1], sasl: {mechanism: plain, username: u, password: `+hidden+`}}}
  - {name: w2, webhook: {url: https://h, bearer: `+hidden+`, headers: {x-key: `+hidden+`}}}
  - {name: w3, webhook: {url: https://h, basic: {user: u, password: `+hidden+`}, secret: `+signing+`}}
  - {name: w4, webhook: {url: https://h, secrets: [`+signing+`]}}
`)
	if cfg.Sources[1].Token.Reveal() != hidden || !strings.Contains(cfg.Sources[0].Remote.Reveal(), hidden) {
		t.Fatal("Reveal does not give the text")
	}
	var logged bytes.Buffer
	slog.New(slog.NewJSONHandler(&logged, nil)).Info("source", "token", cfg.Sources[1].Token, "remote", cfg.Sources[0].Remote)
	inJSON, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	inYAML, err := yaml.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	parts := []any{cfg.Sources, cfg.Sources[0].Remote, cfg.Sources[1].Token}
	partsJSON, err := json.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	partsYAML, err := yaml.Marshal(parts)
	if err != nil {
		t.Fatal(err)
	}
	for form, text := range map[string]string{
		"%v": fmt.Sprintf("%v", cfg.Sources), "%+v": fmt.Sprintf("%+v", cfg.Sources), "%#v": fmt.Sprintf("%#v", cfg.Sources), "%s": fmt.Sprintf("%s", parts), "%q": fmt.Sprintf("%q", parts),
		"slog": logged.String(), "JSON": string(inJSON), "YAML": string(inYAML), "parts in JSON": string(partsJSON), "parts in YAML": string(partsYAML),
	} {
		if strings.Contains(text, hidden) {
			t.Errorf("%s shows a secret: %s", form, text)
		}
		if !strings.Contains(text, masked) {
			t.Errorf("%s does not show that there is one: %s", form, text)
		}
	}
	for _, want := range []string{"user_id=etl", "nats://***@a:1,***", "https://***@h/…", "x-key: '***'", "secret: '***'"} {
		if !strings.Contains(string(inYAML), want) {
			t.Errorf("the summary does not have %s:\n%s", want, inYAML)
		}
	}
}

func TestEmptySecret(t *testing.T) {
	if got := fmt.Sprint(Secret(""), ConnectionString("")); got != " " && got != "" {
		t.Errorf("nothing is shown as %q", got)
	}
	if got := ConnectionString("token=hunter2").String(); got != masked {
		t.Errorf("a connection string that cannot be read is shown as %q", got)
	}
}

// A secret or a file that is written out and empty turns nothing off without a word.
// Only ${NAME:-} says that it may be empty.
func TestEmptySecretsAreNoSecrets(t *testing.T) {
	env := environment(map[string]string{"EMPTY": ""}, nil)
	sink := func(text string) string { return good + "  - {name: s, " + text + "}\n" }
	for path, text := range map[string]string{
		"sources[0].token":                strings.Replace(good, "sinks:", "    token: VALUE\nsinks:", 1),
		"sources[0].remote_file":          "sources:\n  - {name: a, remote_file: VALUE}\nsinks:\n  - {name: s, nats: {url: nats://h}}\n",
		"http.token":                      good + "http: {token: VALUE}\n",
		"sinks[1].nats.token":             sink("nats: {url: nats://h, token: VALUE}"),
		"sinks[1].nats.password":          sink("nats: {url: nats://h, user: u, password: VALUE}"),
		"sinks[1].nats.nkey_file":         sink("nats: {url: nats://h, nkey_file: VALUE}"),
		"sinks[1].nats.creds_file":        sink("nats: {url: nats://h, creds_file: VALUE}"),
		"sinks[1].nats.tls.ca_file":       sink("nats: {url: nats://h, tls: {ca_file: VALUE}}"),
		"sinks[1].kafka.sasl.password":    sink("kafka: {brokers: ['localhost:1'], sasl: {mechanism: plain, username: u, password: VALUE}}"),
		"sinks[1].webhook.secret":         sink("webhook: {url: https://h, secret: VALUE}"),
		"sinks[1].webhook.secrets[0]":     sink("webhook: {url: https://h, secrets: [VALUE]}"),
		"sinks[1].webhook.bearer":         sink("webhook: {url: https://h, bearer: VALUE}"),
		"sinks[1].webhook.basic.password": sink("webhook: {url: https://h, basic: {user: u, password: VALUE}}"),
		"sinks[1].webhook.headers.x-key":  sink("webhook: {url: https://h, headers: {x-key: VALUE}}"),
	} {
		problems := func(value string) []string { return problemsOf(t, strings.Replace(text, "VALUE", value, 1), env) }
		before, _, _ := strings.Cut(text, "VALUE")
		at := fmt.Sprintf("f:%d:%d: %s: ", strings.Count(before, "\n")+1, len(before)-strings.LastIndex(before, "\n"), path)
		same(t, problems(`""`), []string{at + "is empty: give it a value, or take the key out"})
		same(t, problems(`"${EMPTY}"`), []string{at + `"${EMPTY}" is empty: give the variable a value, or write it as in ${NAME:-} if it may be empty`})
		for _, value := range []string{`"${EMPTY:-}"`, `"${UNSET:-}"`} {
			if got := strings.Join(problems(value), "\n"); strings.Contains(got, "is empty") {
				t.Errorf("%s: %s gives %q, and says that it may be empty", path, value, got)
			}
		}
	}
}

// Nor does an error, wherever the secret was put by mistake.
func TestSecretsStayHiddenInErrors(t *testing.T) {
	const hidden = "hunter2"
	for _, text := range []string{
		"sources: sc://h/;token=" + hidden + "\n",
		"sinks: nats://u:" + hidden + "@h\n",
		"sinks: [https://h/" + hidden + "]\n",
		"sinks: [{name: a, nats: 'u:" + hidden + "@h'}]\n",
		"sources: [{token: *" + hidden + "}]\n",
		"sources: [{token: !" + hidden + "}]\n",
		"sources: [{token: !" + hidden + " x}]\n",
		"sinks: [{name: a, nats: {token: [" + hidden + "]}}]\n",
		"sinks: [{name: a, nats: token=" + hidden + "}]\n",
		"sinks: [{name: a, kafka: {brokers: [h:1], sasl: 'u/" + hidden + "'}}]\n",
		"sinks: [{name: a, kafka: {brokers: [h:1], sasl: {mechanism: plain, username: u, password: " + hidden + "}}}]\n",
		"sinks: [{name: a, webhook: {url: https://h, secret: " + hidden + "}}]\n",
		"sinks: [{name: a, webhook: {url: https://h, secrets: " + hidden + "}}]\n",
		"sinks: [{name: a, webhook: {url: https://h, basic: 'u:" + hidden + "'}}]\n",
		"sinks: [{name: a, webhook: {url: https://h, headers: 'X: " + hidden + "'}}]\n",
		"sinks: [{name: a, webhook: {url: https://h, headers: {x: [" + hidden + "]}}}]\n",
		"sources: [{token: [" + hidden + "]}]\n",
		"sources: [{token: 'a${" + hidden + "'}]\n",
		"sources: [{token: 'a${" + hidden + " x}'}]\n",
		"sources: [{name: https://h/" + hidden + "}]\n",
		"sources: [{name: a, token: " + hidden + ", remote: 'sc://u:" + hidden + "@h/;x'}]\n",
		"sources: [{name: a, remote: 'sc://h/;use_ssl=maybe;token=" + hidden + "'}]\n",
	} {
		got := problemsOf(t, text, environment(nil, nil))
		if len(got) == 0 || strings.Contains(strings.Join(got, ""), hidden) {
			t.Errorf("%q: the problems show the secret, or there are none: %q", text, got)
		}
	}
}
