package sinks

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"sparkbridge/listener"
)

// longestToken bounds one token, so that a place with all five names, the ids
// being UUIDs, still fits in the 249 characters of a Kafka topic.
const longestToken = 128

// fields are the names that a template knows.
var fields = map[string]func(*listener.Event) string{
	"source":   func(e *listener.Event) string { return e.Source },
	"query":    (*listener.Event).QueryLabel,
	"kind":     func(e *listener.Event) string { return string(e.Kind) },
	"query_id": func(e *listener.Event) string { return e.QueryID },
	"run_id":   func(e *listener.Event) string { return e.RunID },
}

// knownNames is for errors.
const knownNames = "{source}, {query}, {kind}, {query_id}, {run_id} or {labels.name}"

// Labels are what the configuration says of each source, by its name.
type Labels map[string]map[string]string

// Has tells whether any source has a label.
func (l Labels) Has(name string) bool {
	for _, of := range l {
		if _, ok := of[name]; ok {
			return true
		}
	}
	return false
}

// Template makes the place of an event, a NATS subject or a Kafka topic, or a text
// about it, a key or a header, from a text with {source}, {query}, {kind},
// {query_id}, {run_id} and {labels.name} in it.
type Template struct {
	text   string
	parts  []part
	labels Labels
}

// part is a literal, a field, or a label of the source.
type part struct {
	literal  string
	field    func(*listener.Event) string
	label    string
	ofSource bool // all events of a source have the same
}

func (p *part) fixed() bool { return p.field == nil && p.label == "" }

// With returns the template with the labels that its names stand for. A label
// that an event's source does not have is empty.
func (t *Template) With(labels Labels) *Template {
	known := *t
	known.labels = labels
	return &known
}

// LabelNames are the labels that the template asks for.
func (t *Template) LabelNames() (names []string) {
	for _, p := range t.parts {
		if p.label != "" {
			names = append(names, p.label)
		}
	}
	return names
}

// value is what a part that is not fixed stands for.
func (t *Template) value(p *part, e *listener.Event) string {
	if p.label != "" {
		return t.labels[e.Source][p.label]
	}
	return p.field(e)
}

// ParseTemplate reads a template. Its errors name the template, what is wrong
// with it and what would be right.
func ParseTemplate(text string) (*Template, error) {
	t := &Template{text: text}
	if text == "" {
		return nil, errors.New("template is empty; leave it out for the default")
	}
	for rest := text; rest != ""; {
		literal, after, found := strings.Cut(rest, "{")
		if strings.Contains(literal, "}") {
			return nil, fmt.Errorf("template %q: a } without its {; names are written {source}", text)
		}
		if literal != "" {
			t.parts = append(t.parts, part{literal: literal})
		}
		if !found {
			break
		}
		name, next, closed := strings.Cut(after, "}")
		if !closed {
			return nil, fmt.Errorf("template %q: a { without its }; names are written {source}", text)
		}
		field, known := fields[name]
		label, labelled := strings.CutPrefix(name, "labels.")
		switch {
		case known:
			t.parts = append(t.parts, part{field: field, ofSource: name == "source"})
		case labelled && label != "":
			t.parts = append(t.parts, part{label: label, ofSource: true})
		default:
			return nil, fmt.Errorf("template %q: unknown name {%s}; use %s", text, name, knownNames)
		}
		rest = next
	}
	return t, nil
}

// String returns the text that the template was parsed from.
func (t *Template) String() string { return t.text }

// Fixed tells whether every event has the same place.
func (t *Template) Fixed() bool {
	return len(t.parts) == 1 && t.parts[0].fixed()
}

// Place returns where e goes. Every name in the template becomes one Token.
func (t *Template) Place(e *listener.Event) string { return t.fill(e, Token) }

// Text returns the template with every name replaced by what it stands for, as it
// is.
func (t *Template) Text(e *listener.Event) string {
	return t.fill(e, func(text string) string { return text })
}

func (t *Template) fill(e *listener.Event, form func(string) string) string {
	if t.Fixed() {
		return t.text
	}
	var b strings.Builder
	for i := range t.parts {
		if p := &t.parts[i]; p.fixed() {
			b.WriteString(p.literal)
		} else {
			b.WriteString(form(t.value(p, e)))
		}
	}
	return b.String()
}

// Token makes one token of a subject or topic from any name. A name of at most
// 128 characters out of A-Z a-z 0-9 _ - stays as it is, and no name at all is _.
// In others every other character becomes _ (and the end goes, where it is too
// long); then - and six hexadecimal digits of the SHA-256 of the name's bytes
// follow, which keep names apart that would look the same.
func Token(name string) string {
	if name == "" {
		return "_"
	}
	safe := strings.Map(safeRune, name)
	if safe == name && len(name) <= longestToken {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	mark := "-" + hex.EncodeToString(sum[:3])
	return safe[:min(len(safe), longestToken-len(mark))] + mark
}

func safeRune(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
		return r
	}
	return '_'
}
