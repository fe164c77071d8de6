package sinks

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"sparkbridge/listener"
)

// Match says which events a sink wants. What is left out wants all; of what is
// given an event must satisfy each. An event that is not wanted counts as
// delivered.
type Match struct {
	Kinds    []listener.Kind    `yaml:"kinds" enum:"started,progress,idle,terminated,gap,bus,unknown" example:"[started, terminated, gap]" doc:"The kinds of events."`
	Queries  []string           `yaml:"queries" example:"[\"orders-*\"]" doc:"Names of queries, or ids; * stands for any text and ? for one character. Events without a known name always match."`
	Sources  []string           `yaml:"sources" example:"[etl]" doc:"Names of sources; * and ? as in queries."`
	Outcomes []listener.Outcome `yaml:"outcomes" enum:"failed,stopped,session_closed,driver_lost,unknown" example:"[failed]" doc:"How a run has ended. Events of other kinds than terminated are not affected."`
}

// Validate returns all that is wrong with the patterns, each with its key.
func (m Match) Validate() error {
	var problems []error
	for i, pattern := range m.Queries {
		if pattern == "" {
			problems = append(problems, fmt.Errorf("queries[%d]: is empty; write a name such as orders-*, or leave it out", i))
		}
	}
	for i, pattern := range m.Sources {
		if pattern == "" {
			problems = append(problems, fmt.Errorf("sources[%d]: is empty; write the name of a source, or leave it out", i))
		}
	}
	return errors.Join(problems...)
}

// Wants tells whether an event is for the sink. An event whose query has no name,
// or whose name is not known, passes Queries: a query that failed before it was
// seen must not be missed for its missing name. So do those of the bus, which
// Kinds and Sources select.
func (m Match) Wants(e *listener.Event) bool {
	return oneOf(m.Kinds, e.Kind) &&
		(e.Kind != listener.KindTerminated || oneOf(m.Outcomes, e.Outcome)) &&
		(e.Name == "" || anyGlob(m.Queries, e.Name) || e.QueryID != "" && anyGlob(m.Queries, e.QueryID)) &&
		anyGlob(m.Sources, e.Source)
}

func oneOf[T comparable](wanted []T, v T) bool {
	return len(wanted) == 0 || slices.Contains(wanted, v)
}

func anyGlob(patterns []string, text string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return Glob(p, text) })
}

// Glob tells whether a pattern stands for the whole of a text: * for any number of
// characters, ? for one, everything else for itself. It takes at most the product
// of both lengths in steps.
func Glob(pattern, text string) bool {
	star, retry := -1, 0 // the last * in pattern, and where in text to go on behind it
	p, t := 0, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, retry = p, t
			p++
		case p < len(pattern) && pattern[p] == '?':
			_, n := utf8.DecodeRuneInString(text[t:])
			p, t = p+1, t+n
		case p < len(pattern) && pattern[p] == text[t]:
			p, t = p+1, t+1
		case star >= 0:
			_, n := utf8.DecodeRuneInString(text[retry:])
			retry += n
			p, t = star+1, retry
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}
