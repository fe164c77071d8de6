package listener

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errGone = errors.New("the operation is gone")

// script is a Stream whose deliveries a test pushes.
type script struct {
	mu       sync.Mutex
	waiting  []Delivery
	changed  chan struct{} // closed and renewed at each change
	end      error         // what Next returns when nothing waits
	rest     []Delivery    // what Spark still sends after Finish
	done     []string      // positions confirmed
	finished bool
	closed   bool
}

func newScript() *script { return &script{changed: make(chan struct{})} }

func (s *script) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.changed)
	s.changed = make(chan struct{})
}

// push makes one delivery of events wait.
func (s *script) push(position string, events ...Raw) {
	for i := range events {
		events[i].ResponseID, events[i].Index = position, i
	}
	s.change(func() { s.waiting = append(s.waiting, Delivery{Events: events, Position: position}) })
}

func (s *script) fail(err error) { s.change(func() { s.end = err }) }

func (s *script) Next(ctx context.Context) (Delivery, error) {
	for {
		s.mu.Lock()
		if len(s.waiting) > 0 {
			d := s.waiting[0]
			s.waiting = s.waiting[1:]
			s.mu.Unlock()
			return d, nil
		}
		end, changed := s.end, s.changed
		s.mu.Unlock()
		if end != nil {
			return Delivery{}, end
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Delivery{}, ctx.Err()
		}
	}
}

func (s *script) Done(_ context.Context, d Delivery) error {
	s.change(func() { s.done = append(s.done, d.Position) })
	return nil
}

func (s *script) Finish(context.Context) error {
	s.change(func() { s.finished, s.waiting, s.end = true, append(s.waiting, s.rest...), io.EOF })
	return nil
}

func (s *script) Close() error {
	s.change(func() { s.closed = true })
	return nil
}

// spark answers what a test says it knows, and opens scripts.
type spark struct {
	mu      sync.Mutex
	active  []Query
	err     error // of every answer
	asked   int   // which queries are active
	opened  []*script
	openErr error

	recent    map[string][]string // documents by run
	failures  map[string]*Failure
	forgotten map[string]bool // runs that Spark does not know
	tooLarge  map[string]bool // runs of which all documents are too much to receive
	lasts     int             // questions for the last document
	recents   int             // questions for all documents
}

func (s *spark) set(queries ...Query) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = queries
}

func (s *spark) Active(context.Context) ([]Query, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.active, s.err
}

func (s *spark) answer(q Query) error {
	if s.err == nil && s.forgotten[q.RunID] {
		return ErrNoQuery
	}
	return s.err
}

func (s *spark) LastProgress(_ context.Context, q Query) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lasts++
	documents := s.recent[q.RunID]
	if len(documents) == 0 || s.answer(q) != nil {
		return nil, s.answer(q)
	}
	return []byte(documents[len(documents)-1]), nil
}

func (s *spark) RecentProgress(_ context.Context, q Query) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recents++
	if s.tooLarge[q.RunID] {
		return nil, ErrTooLarge
	}
	var out [][]byte
	for _, d := range s.recent[q.RunID] {
		out = append(out, []byte(d))
	}
	return out, s.answer(q)
}

func (s *spark) Exception(_ context.Context, q Query) (*Failure, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures[q.RunID], s.answer(q)
}

func (s *spark) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// keeps adds documents of a run: batches as their ids, and -n for an idle entry at
// second n, which carries the id of the batch to come.
func (s *spark) keeps(run string, entries ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent == nil {
		s.recent = map[string][]string{}
	}
	next := 0
	for _, n := range entries {
		if n < 0 {
			s.recent[run] = append(s.recent[run], fmt.Sprintf(
				`{"id":"q-%s","runId":"%s","name":"n-%s","timestamp":"2026-01-01T00:01:%02d.000Z","batchId":%d,"durationMs":{"triggerExecution":1},"sources":[{"numInputRows":0}]}`,
				run, run, run, -n, next))
			continue
		}
		next = n + 1
		s.recent[run] = append(s.recent[run], fmt.Sprintf(
			`{"id":"q-%s","runId":"%s","name":"n-%s","timestamp":"2026-01-01T00:00:%02d.000Z","batchId":%d,"durationMs":{"addBatch":1},"sources":[{"numInputRows":1}]}`,
			run, run, run, n%60, n))
	}
}

func (s *spark) Open(context.Context) (Stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.openErr != nil {
		return nil, s.openErr
	}
	stream := newScript()
	s.opened = append(s.opened, stream)
	return stream, nil
}

func progressOf(run string, batch int64) Raw {
	return Raw{Type: TypeProgress, JSON: fmt.Appendf(nil,
		`{"progress":{"id":"q-%s","runId":"%s","name":"n-%s","timestamp":"2026-01-01T00:00:%02d.000Z","batchId":%d}}`,
		run, run, run, batch%60, batch)}
}

func idleOf(run string, second int) Raw {
	return Raw{Type: TypeIdle, JSON: fmt.Appendf(nil,
		`{"id":"q-%s","runId":"%s","timestamp":"2026-01-01T00:01:%02d.000Z"}`, run, run, second)}
}

func terminatedOf(run string) Raw {
	return Raw{Type: TypeTerminated, JSON: fmt.Appendf(nil,
		`{"id":"q-%s","runId":"%s","exception":null,"errorClassOnException":null}`, run, run)}
}

func ids(events []Event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = e.ID
	}
	return out
}

var discard = slog.New(slog.DiscardHandler)

func contextOf(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}
