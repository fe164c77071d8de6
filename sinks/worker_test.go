package sinks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

func TestWorkerRetriesForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, tried := time.Now(), atomic.Int64{}
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			tried.Add(1)
			if time.Since(began) < time.Hour {
				return 0, errors.New("connection refused")
			}
			return len(events), nil
		}}
		w, stop := s.start(t)
		s.fed <- events(1, 3)
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		attempts := int(tried.Load())
		if state := w.State(); state.Err == nil || state.Since != began || state.Failures != attempts || state.Next != 0 {
			t.Errorf("state after half an hour of %d attempts: %+v", attempts, state)
		}
		time.Sleep(32 * time.Minute)
		synctest.Wait()
		if state := w.State(); state.Err != nil || state.Failures != 0 || !state.Since.IsZero() || state.Delivered != 3 || state.Next != 4 {
			t.Errorf("state after the recovery: %+v", state)
		}
		attempts = int(tried.Load())
		if attempts < 50 || attempts > 130 {
			t.Errorf("%d attempts in an hour, want about one a minute", attempts)
		}
		if err := stop(); err != nil || s.lastSaved() != 4 {
			t.Errorf("stopped with %v and cursor %d, want nil and 4", err, s.lastSaved())
		}
		failed, recovered := strings.Count(s.log.String(), "sink fails, will try again\" sink=events step=deliver"), strings.Count(s.log.String(), "sink works again")
		if failed < 30 || failed > 62 || recovered != 1 {
			t.Errorf("%d failures and %d recoveries logged in an hour of %d attempts", failed, recovered, attempts)
		}
	})
}

func TestWorkerLogsAFailureThatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		texts := []string{"refused", "refused", "refused", "no topic", "no topic", "refused"}
		s := &script{}
		s.deliver = func(_ context.Context, events []listener.Event) (int, error) {
			if len(texts) == 0 {
				return len(events), nil
			}
			text := texts[0]
			texts = texts[1:]
			return 0, errors.New(text)
		}
		_, stop := s.start(t)
		s.fed <- events(1, 1)
		time.Sleep(time.Hour)
		_ = stop()
		var logged []string
		for line := range strings.Lines(s.log.String()) {
			for _, word := range []string{"refused", "no topic", "works again"} {
				if strings.Contains(line, word) {
					logged = append(logged, word)
				}
			}
		}
		if got, want := fmt.Sprint(logged), "[refused no topic refused works again]"; got != want {
			t.Errorf("logged %s, want %s\n%s", got, want, s.log.String())
		}
	})
}

func TestWorkerGoesOnBehindWhatIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tried []int
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			tried = append(tried, len(events))
			if len(events) > 2 {
				return 2, errors.New("only two at a time")
			}
			return len(events), nil
		}}
		w, stop := s.start(t)
		s.fed <- events(1, 5)
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(tried) != "[5 3 1]" || fmt.Sprint(s.got) != "[1 2 3 4 5]" || w.State().Delivered != 5 || s.lastSaved() != 6 {
			t.Errorf("tried %v, delivered %v, cursor %d", tried, s.got, s.lastSaved())
		}
	})
}

func TestWorkerHoldsSinksToTheirContract(t *testing.T) {
	for _, wrong := range []int{-1, 2, 4} {
		synctest.Test(t, func(t *testing.T) {
			attempts := 0
			s := &script{}
			s.deliver = func(context.Context, []listener.Event) (int, error) {
				if attempts++; attempts == 1 {
					return wrong, nil // of three
				}
				return 3, nil
			}
			w, stop := s.start(t)
			s.fed <- events(1, 3)
			synctest.Wait()
			if state := w.State(); state.Err == nil || state.Delivered != 0 {
				t.Errorf("%d of 3 without an error was taken: %+v", wrong, state)
			}
			time.Sleep(time.Minute)
			if err := stop(); err != nil || w.State().Delivered != 3 {
				t.Errorf("stopped with %v after %d events", err, w.State().Delivered)
			}
		})
	}
}

func TestWorkerStopsInBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{deliver: func(context.Context, []listener.Event) (int, error) { return 0, errors.New("down") }}
		w, stop := s.start(t)
		s.fed <- events(1, 1)
		time.Sleep(10 * time.Minute)
		at := time.Now()
		if err := stop(); err != nil || time.Since(at) > 0 {
			t.Errorf("stopped with %v after %s", err, time.Since(at))
		}
		if w.State().Next != 0 || len(s.saves()) != 0 {
			t.Errorf("cursor moved without an acknowledgement: %+v, %v", w.State(), s.saves())
		}
	})
}

func TestWorkerStopsInDeliverWithoutAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{deliver: func(ctx context.Context, _ []listener.Event) (int, error) {
			<-ctx.Done()
			return 2, ctx.Err()
		}}
		w, stop := s.start(t)
		s.fed <- events(1, 5)
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Errorf("stopped with %v", err)
		}
		if state := w.State(); state.Err != nil || state.Next != 3 || s.lastSaved() != 3 {
			t.Errorf("state %+v, cursor %d; want no failure and 3", state, s.lastSaved())
		}
		if s.log.String() != "" {
			t.Errorf("logged %s", s.log.String())
		}
	})
}

func TestWorkerSavesTheCursorUnderLoadAndAtOnceWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			time.Sleep(time.Millisecond)
			return len(events), nil
		}}
		_, stop := s.start(t)
		for n := uint64(1); n <= 1000; n++ {
			s.fed <- events(n, n)
		}
		time.Sleep(1100 * time.Millisecond)
		if saves := len(s.saves()); saves < 10 || saves > 12 || s.lastSaved() != 1001 {
			t.Errorf("%d saves in a second of load, the last of %d", saves, s.lastSaved())
		}
		time.Sleep(time.Minute)
		at := time.Now()
		s.fed <- events(1001, 1001)
		time.Sleep(time.Second)
		if last := s.saves()[len(s.saves())-1]; last.next != 1002 || last.at.Sub(at) > time.Millisecond {
			t.Errorf("idle: saved %d after %s", last.next, last.at.Sub(at))
		}
		_ = stop()
	})
}

func TestWorkerOutlivesACursorThatCannotBeSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := true
		s := &script{save: func(uint64) error {
			if full {
				return errors.New("no space left on device")
			}
			return nil
		}}
		w, stop := s.start(t)
		s.fed <- events(1, 3)
		time.Sleep(30 * time.Second)
		if w.State().Delivered != 3 || strings.Count(s.log.String(), `step="save cursor"`) != 1 {
			t.Errorf("delivered %d, log:\n%s", w.State().Delivered, s.log.String())
		}
		s.mu.Lock()
		full = false
		s.mu.Unlock()
		time.Sleep(2 * time.Second)
		if s.lastSaved() != 4 {
			t.Errorf("saved %d, want 4", s.lastSaved())
		}
		_ = stop()
	})
}

func TestWorkerNamesWhatRetentionTook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{acked: 9} // the cursor may pass what is lost
		w, stop := s.start(t)
		s.fed <- fmt.Errorf("read journal: %w", &sinks.LostError{From: 1, To: 9})
		s.fed <- events(10, 11)
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if w.State().Next != 12 || !strings.Contains(s.log.String(), "level=ERROR msg=\"events lost to retention\" sink=events from=1 to=9") {
			t.Errorf("state %+v, log %s", w.State(), s.log.String())
		}
	})
}

func TestWorkerEndsWhenTheJournalCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		_, stop := s.start(t)
		s.fed <- events(1, 2)
		damage := errors.New("damaged")
		s.fed <- damage
		time.Sleep(time.Second)
		if err := stop(); !errors.Is(err, damage) || !strings.Contains(err.Error(), "sink events") {
			t.Errorf("ended with %v", err)
		}
		if s.lastSaved() != 3 {
			t.Errorf("cursor %d, want 3", s.lastSaved())
		}
	})
}

// The waits grow over failures with a success between them, and begin anew only
// after deliveries have gone well for a while.
func TestWorkerBackOffNeedsMoreThanOneSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var waits []time.Duration
		var failedAt time.Time
		attempts := 0
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			if attempts++; attempts%2 == 1 {
				failedAt = time.Now()
				return 0, errors.New("flaky")
			}
			waits = append(waits, time.Since(failedAt))
			return len(events), nil
		}}
		_, stop := s.start(t)
		for n := uint64(1); n <= 10; n++ {
			s.fed <- events(n, n)
		}
		time.Sleep(time.Hour)
		s.fed <- events(11, 11)
		time.Sleep(time.Hour)
		_ = stop()
		if flaky := waits[9]; flaky < 30*time.Second {
			t.Errorf("tenth wait of a flaky destination is %s, want about a minute", flaky)
		}
		if fresh := waits[10]; fresh > time.Second {
			t.Errorf("first wait after a good hour is %s, want about 500ms", fresh)
		}
	})
}
