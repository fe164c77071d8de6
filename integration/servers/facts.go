package servers

import (
	"bytes"
	"encoding/json"
	"sync"
)

// Fact is one line of a job's standard output. Which fields a fact has is told by the docstring
// of the script that prints it.
type Fact struct {
	Fact      string          `json:"fact"`
	Query     string          `json:"query"` // what the script's arguments and commands call a query
	Name      string          `json:"name"`  // its name in Spark; empty when it has none
	ID        string          `json:"id"`
	RunID     string          `json:"runId"`
	SessionID string          `json:"sessionId"`
	Message   string          `json:"message"`
	Line      json.RawMessage `json:"-"` // the whole line
}

// factLog splits what a job writes into lines, keeps them, and wakes those who wait for one.
type factLog struct {
	onFact func(Fact)

	mu      sync.Mutex
	partial []byte
	facts   []Fact
	changed chan struct{} // closed, and replaced, when a fact is added
}

func newFactLog(onFact func(Fact)) *factLog {
	if onFact == nil {
		onFact = func(Fact) {}
	}
	return &factLog{onFact: onFact, changed: make(chan struct{})}
}

func (l *factLog) Write(text []byte) (int, error) {
	l.partial = append(l.partial, text...) // only the process's one copier writes
	for {
		line, rest, whole := bytes.Cut(l.partial, []byte{'\n'})
		if !whole {
			return len(text), nil
		}
		fact := parseFact(bytes.Clone(line))
		l.partial = rest
		l.add(fact)
		l.onFact(fact)
	}
}

// parseFact takes a line that is no JSON object as a fact without a kind.
func parseFact(line []byte) Fact {
	var fact Fact
	if json.Unmarshal(line, &fact) != nil {
		fact = Fact{Message: string(line)}
	}
	fact.Line = line
	return fact
}

func (l *factLog) add(fact Fact) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.facts = append(l.facts, fact)
	close(l.changed)
	l.changed = make(chan struct{})
}

// from returns the facts behind the first n, and what is closed when there are more.
func (l *factLog) from(n int) ([]Fact, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.facts[n:], l.changed
}
