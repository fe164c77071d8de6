package sinks_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// script is everything around a worker: a journal, a destination and a cursor.
type script struct {
	deliver func(ctx context.Context, events []listener.Event) (int, error)
	save    func(next uint64) error
	fed     chan any // []listener.Event or error

	mu    sync.Mutex
	acked uint64 // sequence of the last event acknowledged
	got   []uint64
	saved []save
	log   journal
}

// journal is a log that may be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

type save struct {
	next uint64
	at   time.Time
}

func (s *script) Next(ctx context.Context, _, _ int) ([]listener.Event, error) {
	select {
	case next := <-s.fed:
		if err, failed := next.(error); failed {
			return nil, err
		}
		return next.([]listener.Event), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (s *script) Deliver(ctx context.Context, events []listener.Event) (int, error) {
	n, err := len(events), error(nil)
	if s.deliver != nil {
		n, err = s.deliver(ctx, events)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; i < n && i < len(events); i++ {
		s.got = append(s.got, events[i].Sequence)
		s.acked = max(s.acked, events[i].Sequence)
	}
	return n, err
}

func (s *script) Close() error { return nil }

func (s *script) Save(next uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if next > s.acked+1 {
		panic(fmt.Sprintf("cursor %d leads, last acknowledged is %d", next, s.acked))
	}
	if s.save != nil {
		if err := s.save(next); err != nil {
			return err
		}
	}
	s.saved = append(s.saved, save{next, time.Now()})
	return nil
}

// start runs a worker; the returned function ends it and gives Run's error.
func (s *script) start(t *testing.T) (*sinks.Worker, func() error) {
	t.Helper()
	s.fed = make(chan any, 1000)
	w := sinks.NewWorker(sinks.Options{
		Name: "events", Sink: s, Source: s, Cursor: s,
		Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return w, func() error { cancel(); return <-ended }
}

func events(from, to uint64) []listener.Event {
	var out []listener.Event
	for n := from; n <= to; n++ {
		out = append(out, listener.Event{Sequence: n, ID: fmt.Sprint(n)})
	}
	return out
}

// delivered are the sequences that the destination has acknowledged so far.
func (s *script) delivered() []uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

func (s *script) saves() []save {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.saved)
}

func (s *script) lastSaved() uint64 {
	all := s.saves()
	if len(all) == 0 {
		return 0
	}
	return all[len(all)-1].next
}
