package listener

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/tidwall/gjson"
)

// startPatience is for how long events of a new run are held while a query starts. After
// that its start is inferred, and Spark's own follows.
const startPatience = 10 * time.Second

// Start runs start, which starts a query of the session and returns Spark's started event
// of it, or nil where Spark told none. A feed of the admission delivers the event before
// any other of the run: until start returns, events of runs that are new wait, for ten
// seconds at most. Its error is that of start, or says that the document is no started
// event.
//
// It may be called by several goroutines at once, while a feed runs or before.
func (a *Admission) Start(ctx context.Context, start func(context.Context) ([]byte, error)) error {
	over := a.starts.begin()
	var told []Event
	defer func() { over(told) }()
	document, err := start(ctx)
	if err != nil || document == nil {
		return err
	}
	e, err := decodeStarted(document)
	if err == nil {
		told = []Event{e}
	}
	return err
}

// decodeStarted reads the event of a start result: {id, runId, name, timestamp}, since Spark 4.1
// with jobTags.
func decodeStarted(document []byte) (Event, error) {
	e := Event{Kind: KindStarted, Origin: OriginClient, BatchID: NoBatch, Payload: document}
	if !gjson.ValidBytes(document) {
		return Event{}, errors.New("decode started: not JSON")
	}
	decodeIDs(&e)
	at, timed := instant(gjson.GetBytes(document, "timestamp"))
	if e.QueryID == "" || e.RunID == "" || !timed {
		return Event{}, fmt.Errorf("decode started: no id, runId or timestamp in %.200q", document)
	}
	e.ID, e.Time = startedID(e.RunID, OriginClient), at
	return e, nil
}

// begun admits Spark's own word of a start. It may come late, after a start that was
// inferred: then it follows under its own id.
func (a *Admission) begun(e Event) []Event {
	l := a.life(e.RunID)
	l.QueryID, l.Name, l.active, l.seen = e.QueryID, e.Name, true, a.now()
	if !a.marks.Started(e.RunID) && !a.marks.Once(e.ID) {
		return nil
	}
	a.join(&e)
	return []Event{a.stamp(e)}
}

// begun admits the starts that were told since the last time, each after the end of what it
// replaces.
func (f *Feed) begun(ctx context.Context) []Event {
	var out []Event
	for _, e := range f.Admission.starts.take() {
		out = append(out, f.succeed(ctx, Query{ID: e.QueryID, RunID: e.RunID, Name: e.Name})...)
		out = append(out, f.Admission.begun(e)...)
	}
	return out
}

// hold waits while queries start, if a delivery may be of one of them.
func (f *Feed) hold(ctx context.Context, d Delivery) {
	a := f.Admission
	if !a.starts.running() {
		return
	}
	a.mu.Lock()
	unseen := a.unseen(a.read(d))
	a.mu.Unlock()
	if unseen {
		a.starts.wait(ctx)
	}
}

// starts are the starts of queries by this process: those under way, and what is told of
// those that are over.
type starts struct {
	mu      sync.Mutex
	pending map[*startOfQuery]struct{}
	told    []Event
	wake    context.CancelFunc // of a feed that waits for something to happen
}

type startOfQuery struct {
	began time.Time
	over  chan struct{}
}

// begin notes a start; over says that it has ended, and what is told of it.
func (s *starts) begin() (over func(told []Event)) {
	one := &startOfQuery{time.Now(), make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending == nil {
		s.pending = make(map[*startOfQuery]struct{})
	}
	s.pending[one] = struct{}{}
	return func(told []Event) {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.pending, one)
		close(one.over)
		s.told = append(s.told, told...)
		if len(s.told) > 0 && s.wake != nil {
			s.wake()
		}
	}
}

func (s *starts) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pending) > 0
}

// take returns what was told since the last time.
func (s *starts) take() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.told
	s.told = nil
	return told
}

// waiting returns a context that also ends when there is something to take.
func (s *starts) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = cancel
	if len(s.told) > 0 {
		cancel()
	}
	return ctx, cancel
}

// wait waits for those that are under way, each until its patience is over, or ctx ends.
func (s *starts) wait(ctx context.Context) {
	s.mu.Lock()
	var pending []*startOfQuery
	for one := range s.pending {
		pending = append(pending, one)
	}
	s.mu.Unlock()
	for _, one := range pending {
		patience := time.NewTimer(time.Until(one.began.Add(startPatience)))
		select {
		case <-one.over:
		case <-patience.C:
		case <-ctx.Done():
		}
		patience.Stop()
	}
}
