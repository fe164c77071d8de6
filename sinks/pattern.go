package sinks

import (
	"slices"
	"strings"

	"sparkbridge/listener"
)

// Pattern returns the place of all events of a source, with * for each name that
// only an event tells. Without a * it is the place itself.
func (t *Template) Pattern(source string) string {
	var b strings.Builder
	of := listener.Event{Source: source}
	for i := range t.parts {
		switch p := &t.parts[i]; {
		case p.fixed():
			b.WriteString(p.literal)
		case p.ofSource:
			b.WriteString(Token(t.value(p, &of)))
		default:
			b.WriteString("*")
		}
	}
	return b.String()
}

// Patterns returns the patterns of several sources, each once.
func (t *Template) Patterns(sources []string) []string {
	var patterns []string
	for _, source := range sources {
		if p := t.Pattern(source); !slices.Contains(patterns, p) {
			patterns = append(patterns, p)
		}
	}
	return patterns
}
