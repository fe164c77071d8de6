package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	goccy "github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/parser"
	"gopkg.in/yaml.v3"
)

// maxFileBytes bounds the configuration file, which people write by hand.
const maxFileBytes = 1 << 20

// Load reads and checks a configuration file in the environment of this process, and
// the files of sinks that it names. What it returns is complete: defaults filled in,
// variables expanded, and relative paths started at the folder of the file. The error
// is an Errors with all problems.
func Load(path string) (*Config, error) {
	env := OSEnvironment()
	env.Files = true
	return load(path, env)
}

// Look is Load without a look at the files of sinks, which do not matter to who works
// on a bridge that runs already.
func Look(path string) (*Config, error) { return load(path, OSEnvironment()) }

func load(path string, env Environment) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	// What comes through a pipe lies in no folder of the user's.
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		env.Folder = filepath.Dir(path)
	}
	return Parse(path, data, env)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, Errors{{File: path, Problem: "there is no such file: name another with -c, or start with the example (bridge.example.yaml)"}}
	}
	if err != nil {
		return nil, Errors{{File: path, Problem: "cannot be read: " + reason(err)}}
	}
	defer f.Close() //nolint:errcheck // only read from
	data, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err != nil {
		return nil, Errors{{File: path, Problem: "cannot be read: " + reason(err)}}
	}
	return data, nil
}

// reason is the error of a file operation without the path, which is told already.
func reason(err error) string {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// Parse reads and checks the text of a configuration file; name is how errors
// call it.
func Parse(name string, data []byte, env Environment) (*Config, error) {
	p := newProblems(name)
	root := document(p, data)
	cfg := defaults()
	if root != nil {
		d := &decoder{problems: p, env: env}
		d.value(root, reflect.ValueOf(cfg).Elem(), "")
	}
	if root != nil && root.Kind == yaml.MappingNode {
		resolve(reflect.ValueOf(cfg).Elem(), env.find)
		cfg.validate(p)
		if env.Files {
			cfg.checkFiles(p)
		}
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return cfg, nil
}

// document returns the root of the only document of the file, nil if there is
// none to go on with.
func document(p *problems, data []byte) *yaml.Node {
	switch {
	case len(data) > maxFileBytes:
		p.addAt(0, 0, "", "has more than %d bytes: is this the right file?", maxFileBytes)
		return nil
	case !isText(data):
		p.addAt(0, 0, "", "is not text in UTF-8: is this the right file?")
		return nil
	}
	reader := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := reader.Decode(&doc); {
	case errors.Is(err, io.EOF) || err == nil && isNothing(&doc):
		p.addAt(0, 0, "", "is empty: it needs sources and sinks at least")
		return nil
	case err != nil:
		syntax(p, data, err)
		return nil
	}
	switch err := reader.Decode(&second); {
	case err == nil:
		p.addAt(second.Line, second.Column, "", "holds a second document: keep one, without a line of ---")
	case !errors.Is(err, io.EOF):
		syntax(p, data, err)
	}
	return doc.Content[0]
}

// isText says whether data can be YAML, which is UTF-8, or UTF-16 with its mark.
func isText(data []byte) bool {
	marked := bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff"))
	return marked || utf8.Valid(data)
}

func isNothing(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null"
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// syntax notes an error of the YAML parser. That one reads all that is YAML, but
// its positions are lines only and often one off; where the second parser sees
// the error too, its position is told.
func syntax(p *problems, data []byte, err error) {
	line, column, text := 0, 0, err.Error()
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1])
		text = m[2]
	}
	if name, ok := strings.CutPrefix(text, "unknown anchor '"); ok {
		// Not named: it may be a secret that begins with *.
		text = "an alias (*) names no anchor: put a text that begins with * into quotes"
		line, column = position(data, "*"+strings.TrimSuffix(name, "' referenced"))
	}
	if l, c, t, ok := secondOpinion(data); ok {
		line, column, text = l, c, t
	}
	p.addAt(line, column, "", "is not YAML: %s%s", text, hint(data, line))
}

// position is where a text begins for the first time, zeros where it does not.
func position(data []byte, text string) (line, column int) {
	before, _, found := strings.Cut(string(data), text)
	if !found {
		return 0, 0
	}
	return 1 + strings.Count(before, "\n"), len(before) - strings.LastIndexByte(before, '\n')
}

// maxForOpinion bounds what the second parser is asked about: the time that it takes
// grows with the square of how deep a text nests.
const maxForOpinion = 16 << 10

func secondOpinion(data []byte) (line, column int, text string, ok bool) {
	if len(data) > maxForOpinion {
		return 0, 0, "", false
	}
	defer func() {
		if recover() != nil { // it is asked about broken text only; its word is not worth a crash
			ok = false
		}
	}()
	_, err := parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
	var syntax *goccy.SyntaxError
	if !errors.As(err, &syntax) || syntax.Token == nil || syntax.Token.Position == nil {
		return 0, 0, "", false
	}
	at := syntax.Token.Position
	return at.Line, at.Column, syntax.Message, true
}

// hint adds the likely reason where the line shows one.
func hint(data []byte, line int) string {
	lines := bytes.Split(data, []byte("\n"))
	if line < 1 || line > len(lines) {
		return ""
	}
	text := string(lines[line-1])
	switch inFlow := strings.ContainsAny(strings.ReplaceAll(text, "${", ""), "{["); {
	case strings.Contains(text, "${") && inFlow:
		return ": put ${…} into quotes inside { } and [ ]"
	case strings.Contains(text, "\t"):
		return ": indent with spaces, not tabs"
	}
	return ""
}

// defaults returns the configuration of an empty file.
func defaults() *Config {
	cfg := &Config{}
	setDefaults(reflect.ValueOf(cfg).Elem())
	return cfg
}

// setDefaults fills a struct and the structs in it from their default tags.
func setDefaults(v reflect.Value) {
	for _, k := range keysOf(v.Type()) {
		field := v.Field(k.index)
		switch {
		case k.fallback != "":
			if err := setText(field, k.fallback); err != nil {
				panic(fmt.Sprintf("configs: default of %s: %s %v", k.name, k.fallback, err))
			}
		case field.Kind() == reflect.Struct && shapeOf(k.typ) == shapeMapping:
			setDefaults(field)
		}
	}
}
