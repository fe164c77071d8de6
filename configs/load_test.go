package configs

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestDefaults(t *testing.T) {
	cfg := parse(t, good)
	s, k := cfg.Sources[0], cfg.Sinks[0]
	checks := map[string]bool{
		"attach":        s.Attach == AttachFirstQuery,
		"on_stop":       s.OnStop == OnStopRemove,
		"poll_interval": s.PollInterval == 5*time.Second,
		"dir":           cfg.Journal.Dir == "bridge-data",
		"max_age":       cfg.Journal.MaxAge == 7*24*time.Hour,
		"max_bytes":     cfg.Journal.MaxBytes == 10<<30,
		"retry":         k.Retry == Retry{Initial: 500 * time.Millisecond, Max: time.Minute},
		"subject":       k.NATS.Subject == "spark.{source}.{query}.{kind}",
		"jetstream":     k.NATS.JetStream,
		"redact":        k.Redact,
		"level":         cfg.Log.Level.Level() == slog.LevelInfo,
		"format":        cfg.Log.Format == LogAuto,
	}
	for key, ok := range checks {
		if !ok {
			t.Errorf("%s has another default: %+v", key, cfg)
		}
	}
}

// What a file says goes over the default, false and other zeros too.
func TestEveryKey(t *testing.T) {
	cfg := parse(t, `
sources:
  - {name: a, remote: "sc://h:1/;use_ssl=true", token: s3cret, attach: at_once, create_session: true, on_stop: keep, poll_interval: 1m30s}
journal: {dir: /var/j, max_age: 7d, max_bytes: 1048576}
sinks:
  - {name: n, nats: {url: nats://a, subject: "x.{kind}", jetstream: false}, retry: {initial: 1s, max: 2s}}
  - {name: k, kafka: {brokers: [a:1, b:2], topic: t}}
  - {name: w, webhook: {url: http://a/b, timeout: 3s}, redact: false}
log: {level: debug, format: json}
`)
	s := cfg.Sources[0]
	remote, err := s.ParsedRemote()
	if err != nil {
		t.Fatal(err)
	}
	checks := map[string]bool{
		"remote":         remote.Host == "h" && remote.Port == 1,
		"token":          remote.Token == "s3cret",
		"attach":         s.Attach == AttachAtOnce,
		"create_session": s.CreateSession,
		"on_stop":        s.OnStop == OnStopKeep,
		"poll_interval":  s.PollInterval == 90*time.Second,
		"journal":        cfg.Journal == Journal{Dir: "/var/j", MaxAge: 168 * time.Hour, MaxBytes: 1 << 20, WhenFull: WhenFullDropOldest},
		"nats":           cfg.Sinks[0].NATS.Subject == "x.{kind}" && !cfg.Sinks[0].NATS.JetStream,
		"retry":          cfg.Sinks[0].Retry == Retry{Initial: time.Second, Max: 2 * time.Second},
		"kafka":          reflect.DeepEqual(cfg.Sinks[1].Kafka.Brokers, []string{"a:1", "b:2"}) && cfg.Sinks[1].Kafka.Topic == "t",
		"webhook":        cfg.Sinks[2].Webhook.URL == "http://a/b" && cfg.Sinks[2].Webhook.Timeout == 3*time.Second,
		"redact":         cfg.Sinks[1].Redact && !cfg.Sinks[2].Redact,
		"log":            cfg.Log.Level.Level() == slog.LevelDebug && cfg.Log.Format == LogJSON,
	}
	for key, ok := range checks {
		if !ok {
			t.Errorf("%s was not taken from the file: %+v", key, cfg)
		}
	}
}

// The example files are right, and the full one says the defaults.
func TestExamples(t *testing.T) {
	t.Setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", "")
	full, err := Load("bridge.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	minimal, err := Load("bridge.minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(full.Sources, minimal.Sources) || full.Journal != minimal.Journal || full.Log != minimal.Log {
		t.Errorf("the full example says other defaults:\n%+v\nthan hold:\n%+v", full, minimal)
	}
	if !reflect.DeepEqual(full.Sinks[0], minimal.Sinks[0]) {
		t.Errorf("the full example says other defaults of a NATS sink: %+v, %+v", full.Sinks[0].NATS, minimal.Sinks[0].NATS)
	}
}

// Whoever looks for a key finds it in the full example, and each has a text.
func TestExampleHasEveryKey(t *testing.T) {
	text, err := os.ReadFile("bridge.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var visit func(typ reflect.Type, path string)
	visit = func(typ reflect.Type, path string) {
		typ = itemType(typ)
		if typ.Kind() != reflect.Struct {
			return
		}
		for _, k := range keysOf(typ) {
			at := join(path, k.name)
			if !strings.Contains(string(text), k.name+":") {
				t.Errorf("%s is not in bridge.example.yaml", at)
			}
			if k.doc == "" {
				t.Errorf("%s has no doc", at)
			}
			visit(k.typ, at)
		}
	}
	visit(reflect.TypeFor[Config](), "")
}

func TestAliases(t *testing.T) {
	cfg := parse(t, good+`  - {name: again, nats: &n {url: nats://other}}
  - {name: third, nats: *n}
`)
	if got := cfg.Sinks[2].NATS.URL; got != "nats://other" {
		t.Errorf("the alias stands for %q", got)
	}
	if cfg.Sinks[1].NATS == cfg.Sinks[2].NATS {
		t.Error("two sinks share one configuration")
	}
}

// Aliases of aliases may not unfold to more than memory holds.
func TestAliasBomb(t *testing.T) {
	var text strings.Builder
	text.WriteString(strings.Replace(good, "{url: nats://localhost:4222}", "{url: nats://h}\n  - name: k\n    kafka: {brokers: &b ["+strings.Repeat("h:1,", 400)+"]}", 1))
	for i := range maxNodes / 400 {
		fmt.Fprintf(&text, "  - {name: k%d, kafka: {brokers: *b}}\n", i)
	}
	got := problemsOf(t, text.String(), environment(nil, nil))
	if len(got) > maxProblems || !strings.Contains(strings.Join(got, "\n"), "unfolds to more than 100000 values: use fewer aliases") {
		t.Errorf("got %d problems, want few and one that names the aliases: %s", len(got), got[0])
	}
}

func TestFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large.yaml")
	if err := os.WriteFile(large, []byte(strings.Repeat("# comment\n", maxFileBytes/10+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "binary.yaml")
	if err := os.WriteFile(binary, []byte("\x7fELF\x02\xff\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		binary:                          "is not text in UTF-8",
		filepath.Join(dir, "none.yaml"): "there is no such file",
		dir:                             "is a directory",
		large:                           "has more than 1048576 bytes",
	} {
		_, err := Load(path)
		if err == nil || !strings.HasPrefix(err.Error(), path+": ") || !strings.Contains(err.Error(), want) {
			t.Errorf("Load(%s): got error %v, want one that names the file and says %q", path, err, want)
		}
	}
}

// A text that nests absurdly deep is refused at once: of the two parsers, one would
// think about it for minutes.
func TestDeepNesting(t *testing.T) {
	refused := make(chan error, 1)
	go func() {
		_, err := Parse("f", []byte(strings.Repeat("[", maxFileBytes)), environment(nil, nil))
		refused <- err
	}()
	select {
	case err := <-refused:
		if err == nil || !strings.Contains(err.Error(), "is not YAML") {
			t.Errorf("got error %v, want one that says that it is no YAML", err)
		}
	case <-time.After(time.Minute):
		t.Error("still not refused after a minute")
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"bridge.example.yaml", "bridge.minimal.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		good, "", "a", "- a", "[", "{", "a: &a [*a]", "&a a: *a", "sources: &s\n  - *s", "<<: {a: b}", "? [a]\n: b", "sources:\n\t- a",
		"log: {level: ${A:-debug}}", "log: {level: \"${\"}", "log: !!binary aaa", "%YAML 1.1\n---\na", "a: 'x\n", "\xff", "sources: [[[[[[", "log: {format: '$$${A}$'}",
		"journal: {max_age: 106751d24h, max_bytes: 9999999999999TiB}", "sinks: [{name: a, kafka: {brokers: [${A}]}}]", withQueries("  conf: {a: 1}\n  queries: [{name: q, views: {v: {format: rate, options: {a: true}}}, output: {table: t, checkpoint: /c}, trigger: continuous 1s}]\n"),
	} {
		f.Add([]byte(text))
	}
	env := environment(map[string]string{"A": "b: c\n- d", "E": ""}, map[string]string{"/f": "text\n"})
	f.Fuzz(func(t *testing.T, text []byte) {
		cfg, err := Parse("f", text, env)
		if (cfg == nil) == (err == nil) {
			t.Fatalf("Parse returned %v and %v", cfg, err)
		}
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "f:") {
					t.Fatalf("a line without the file: %q", line)
				}
			}
			return
		}
		if _, err := cfg.MarshalYAML(); err != nil {
			t.Fatalf("a right configuration cannot be shown: %v", err)
		}
		for i := range cfg.Sources {
			if _, err := cfg.Sources[i].ParsedRemote(); err != nil {
				t.Fatalf("a checked connection string cannot be parsed: %v", err)
			}
		}
	})
}
