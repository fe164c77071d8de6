package configs

import (
	"bytes"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"gopkg.in/yaml.v3"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("bridge.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("bridge.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func validate(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	var doc any
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	return schema.Validate(doc)
}

// The schema and the loader agree on what is right.
func TestSchemaTakesWhatIsRight(t *testing.T) {
	schema := compiled(t)
	texts := []string{
		good,
		good + "journal: {max_bytes: 1048576, max_age: 1d12h}\n",
		withQueries("  conf: {a: 1, b: true}\n  setup: [SELECT 1]\n  queries:\n  - {name: q, views: {v: {table: t, options: {x: 1.5}, watermark: {column: a, delay: 1 hour}}}, output: {format: memory}, trigger: continuous 1s}\n"),
		strings.Replace(good, "sinks:", "    create_session: ${B}\n    poll_interval: ${T}\n    attach: ${E}\nsinks:", 1),
	}
	for _, name := range []string{"bridge.example.yaml", "bridge.minimal.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	env := environment(map[string]string{"B": "true", "T": "5s", "E": "at_once"}, nil)
	for _, text := range texts {
		if err := validate(t, schema, text); err != nil {
			t.Errorf("the schema refuses what is right: %v\n%s", err, text)
		}
		if _, err := Parse("f", []byte(text), env); err != nil {
			t.Errorf("the loader refuses what is right: %v\n%s", err, text)
		}
	}
}

func TestSchemaRefusesWhatIsWrong(t *testing.T) {
	schema := compiled(t)
	for name, text := range map[string]string{
		"nothing":          "{}",
		"unknown key":      good + "htpp: {listen: x}\n",
		"unknown key deep": strings.Replace(good, "url:", "uri:", 1),
		"no list":          "sources: a\nsinks: []\n",
		"empty list":       strings.Replace(good, "sinks:", "sinks: []\nx:", 1),
		"name":             strings.Replace(good, "name: etl", "name: ETL", 1),
		"no name":          strings.Replace(good, "name: events", "retry: {max: 1m}", 1),
		"no query name":    withQueries("  queries: [{views: {v: {format: rate}}, output: {format: memory}}]\n"),
		"no output":        withQueries("  queries: [{name: q, views: {v: {format: rate}}}]\n"),
		"odd option":       withQueries("  queries: [{name: q, views: {v: {format: rate, options: {a: [b]}}}, output: {format: memory}}]\n"),
		"enum":             good + "log: {level: loud}\n",
		"number":           good + "log: {level: 5}\n",
		"bool":             strings.Replace(good, "sinks:", "    create_session: \"yes\"\nsinks:", 1),
		"duration":         good + "journal: {max_age: 5}\n",
		"no unit":          good + "journal: {max_age: \"5\"}\n",
		"size":             good + "journal: {max_bytes: many}\n",
		"empty secret":     good + "http: {token: \"\"}\n",
		"empty list item":  good + "  - {name: w, webhook: {url: https://h, secrets: [\"\"]}}\n",
		"empty path":       strings.Replace(good, "nats: {", "nats: {creds_file: \"\", ", 1),
		"no destination":   strings.Replace(good, "    nats: {url: nats://localhost:4222}\n", "", 1),
		"two destinations": good + "    webhook: {url: http://h}\n",
	} {
		if err := validate(t, schema, text); err == nil {
			t.Errorf("%s: the schema takes it\n%s", name, text)
		}
		if problemsOf(t, text, environment(nil, nil)) == nil {
			t.Errorf("%s: the loader takes it\n%s", name, text)
		}
	}
}

// Every key of a file or folder is known as one, and says where relative paths start.
func TestSchemaSaysWherePathsStart(t *testing.T) {
	paths := 0
	var visit func(typ reflect.Type, path string)
	visit = func(typ reflect.Type, path string) {
		typ = itemType(typ)
		if typ.Kind() != reflect.Struct || shapeOf(typ) != shapeMapping {
			return
		}
		for _, k := range keysOf(typ) {
			if named := strings.HasSuffix(k.name, "_file") || k.name == "dir"; named != k.path {
				t.Errorf("%s is a path by its name: %v, by its tag: %v", join(path, k.name), named, k.path)
			}
			if k.path {
				paths++
			}
			visit(k.typ, join(path, k.name))
		}
	}
	visit(reflect.TypeFor[Config](), "")
	if said := strings.Count(string(Schema()), "A relative path starts at the folder of the configuration file."); said != paths || paths == 0 {
		t.Errorf("%d of %d paths say where they start", said, paths)
	}
}
