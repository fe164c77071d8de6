package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
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

// box is dead letters and replays in memory, bounded as the real ones are. Letters
// pass through their stored form.
type box struct {
	max    int
	broken atomic.Pointer[error] // what changes and First are answered with

	mu      sync.Mutex
	letters map[uint64][]byte
	added   []int // how many each Add was asked to take
	replays []sinks.Replay
	journal []listener.Event
	saved   []sinks.Replay
}

// fail lets changes fail, with nil no more.
func (b *box) fail(err error) {
	if b.broken.Store(nil); err != nil {
		b.broken.Store(&err)
	}
}

func (b *box) failure() error {
	if err := b.broken.Load(); err != nil {
		return *err
	}
	return nil
}

func (b *box) Add(letters ...sinks.Letter) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.failure(); err != nil {
		return err
	}
	if b.letters == nil {
		b.letters = map[uint64][]byte{}
	}
	added := map[uint64][]byte{}
	for _, l := range letters {
		blob, err := sinks.EncodeLetter(l)
		if err != nil {
			return err
		}
		added[l.Event.Sequence] = blob
	}
	all := maps.Clone(b.letters)
	maps.Copy(all, added)
	b.added = append(b.added, len(letters))
	if b.max > 0 && len(all) > max(b.max, len(b.letters)) {
		return sinks.ErrLettersFull
	}
	b.letters = all
	return nil
}

func (b *box) Each(from uint64, fn func(sinks.Letter) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, sequence := range slices.Sorted(maps.Keys(b.letters)) {
		if sequence < from {
			continue
		}
		l, err := sinks.DecodeLetter(b.letters[sequence])
		if err == nil {
			err = fn(l)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *box) list(t *testing.T) (list []sinks.Letter) {
	t.Helper()
	if err := b.Each(0, func(l sinks.Letter) error { list = append(list, l); return nil }); err != nil {
		t.Fatal(err)
	}
	return list
}

// bound lets so many letters in.
func (b *box) bound(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.max = n
}

// adds are how many letters each Add was asked to take since the last time.
func (b *box) adds() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	added := b.added
	b.added = nil
	return added
}

// retry marks letters, all if none is named.
func (b *box) retry(t *testing.T, sequences ...uint64) {
	t.Helper()
	for _, l := range b.list(t) {
		if l.Retry = len(sequences) == 0 || slices.Contains(sequences, l.Event.Sequence); l.Retry {
			if err := b.Add(l); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// ask asks for a replay.
func (b *box) ask(r sinks.Replay) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.replays = append(b.replays, r)
}

// asked are the replays that are not finished.
func (b *box) asked() []sinks.Replay {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.replays)
}

func (b *box) Drop(sequence uint64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.failure(); err != nil {
		return err
	}
	delete(b.letters, sequence)
	return nil
}

func (b *box) First() (sinks.Replay, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.replays) == 0 {
		return sinks.Replay{}, false, nil
	}
	return b.replays[0], true, nil
}

func (b *box) Save(r sinks.Replay) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.saved = append(b.saved, r)
	for i := range b.replays {
		if b.replays[i].ID == r.ID { // one that was cancelled stays so
			b.replays[i] = r
		}
	}
	return nil
}

func (b *box) Finish(string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.failure(); err != nil {
		return err
	}
	b.replays = b.replays[1:]
	return nil
}

func (b *box) Open(from, to uint64) (sinks.Source, func() error, error) {
	r := &reel{}
	for _, e := range b.journal {
		if e.Sequence >= from && e.Sequence < to {
			r.events = append(r.events, e)
		}
	}
	return r, func() error { return nil }, nil
}

// reel is a source that ends.
type reel struct{ events []listener.Event }

func (r *reel) Next(context.Context, int, int) ([]listener.Event, error) {
	if len(r.events) == 0 {
		return nil, io.EOF
	}
	n := min(3, len(r.events))
	events := r.events[:n]
	r.events = r.events[n:]
	return events, nil
}

// run runs a worker with dead letters on events that are all there.
func (s *script) run(t *testing.T, b *box, change func(*sinks.Options)) (*sinks.Worker, func() error) {
	t.Helper()
	if s.fed == nil {
		s.fed = make(chan any, 1000)
	}
	o := sinks.Options{
		Name: "events", Sink: s, Source: s, Cursor: unchecked{s}, Letters: b, Replays: b, GiveUp: time.Hour,
		Log: slog.New(slog.NewTextHandler(&s.log, nil)),
	}
	if change != nil {
		change(&o)
	}
	w := sinks.NewWorker(o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return w, func() error { cancel(); return <-ended }
}

// unchecked saves cursors that pass dead letters too.
type unchecked struct{ s *script }

func (u unchecked) Save(next uint64) error {
	u.s.mu.Lock()
	defer u.s.mu.Unlock()
	u.s.saved = append(u.s.saved, save{next, time.Now()})
	return nil
}

// lanes are events of several queries in turn, from sequence 1.
func lanes(queries, n int) []listener.Event {
	all := events(1, uint64(n))
	for i := range all {
		all[i].QueryID, all[i].Kind = fmt.Sprint("q", i%queries), listener.KindProgress
		all[i].Recorded = time.Now()
	}
	return all
}

func (b *box) sequences(t *testing.T) (list []uint64) {
	t.Helper()
	for _, l := range b.list(t) {
		list = append(list, l.Event.Sequence)
	}
	return list
}

var errPoison = errors.New("500 internal server error")

// poisoned is a destination that takes a batch as a whole or not at all, and never one
// with a poisonous event; nothing at all from one time to another.
func poisoned(poison func(*listener.Event) error) func(context.Context, []listener.Event) (int, error) {
	return func(_ context.Context, events []listener.Event) (int, error) {
		for i := range events {
			if err := poison(&events[i]); err != nil {
				return 0, err
			}
		}
		return len(events), nil
	}
}

func TestAnEventThatIsRefusedIsADeadLetter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, refusal := &box{}, sinks.Permanent(errors.New("400 bad request"))
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			for i := range events {
				if events[i].Sequence%4 == 0 {
					return i, refusal
				}
			}
			return len(events), nil
		}}
		s.fed = make(chan any, 1)
		s.fed <- lanes(3, 10)
		w, stop := s.run(t, b, nil)
		synctest.Wait() // no wait at all: the destination is well
		if got := fmt.Sprint(s.delivered(), b.sequences(t)); got != "[1 2 3 5 6 7 9 10] [4 8]" {
			t.Errorf("delivered and dead: %s", got)
		}
		letters := b.list(t)
		if l := letters[0]; l.Cause != sinks.CauseRefused || l.Reason != "400 bad request" || l.Attempts != 1 || l.Event.ID != "4" || !l.Time.Equal(time.Now()) {
			t.Errorf("letter %+v", l)
		}
		if state := w.State(); state.Buried != 2 || state.Delivered != 8 || state.Next != 11 || state.Err != nil {
			t.Errorf("state %+v", state)
		}
		if err := stop(); err != nil || s.lastSaved() != 11 {
			t.Errorf("stopped with %v, cursor %d", err, s.lastSaved())
		}
	})
}

// Whatever fails, and wherever it is in a batch: the others go through, in the order
// of their query, soon; the failing one blocks only its own query, and is given up
// after GiveUp.
func TestTheFailingEventIsFound(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		queries, n := 2+r.IntN(5), 20+r.IntN(400)
		bad := map[uint64]bool{}
		for range 1 + r.IntN(2) {
			bad[1+uint64(r.IntN(n))] = true
		}
		synctest.Test(t, func(t *testing.T) {
			s := &script{deliver: poisoned(func(e *listener.Event) error {
				if bad[e.Sequence] {
					return errPoison
				}
				return nil
			})}
			s.fed = make(chan any, 1)
			all := lanes(queries, n)
			s.fed <- all
			b := &box{}
			w, stop := s.run(t, b, nil)
			time.Sleep(5 * time.Minute)
			synctest.Wait()
			blocked := 0
			for _, e := range all {
				for sequence := range bad {
					if e.Sequence >= sequence && e.QueryID == all[sequence-1].QueryID {
						blocked++
						break
					}
				}
			}
			if free := n - blocked; len(s.delivered()) != free || len(b.sequences(t)) != 0 || w.State().Aside > blocked {
				t.Fatalf("seed %d: after 5 minutes %d of %d events are delivered, %d aside, want %d and %d", seed, len(s.delivered()), n, w.State().Aside, free, blocked)
			}
			s.fed <- []listener.Event{{Sequence: uint64(n + 1), QueryID: "another"}}
			for hour := uint64(2); hour < 200; hour++ { // others go through all the while
				time.Sleep(time.Minute)
				s.fed <- []listener.Event{{Sequence: uint64(n) + hour, QueryID: "another"}}
			}
			synctest.Wait()
			if got := b.sequences(t); len(got) != len(bad) || !bad[got[0]] {
				t.Fatalf("seed %d: dead letters %v, want %v", seed, got, bad)
			}
			last := map[string]uint64{}
			for _, sequence := range s.delivered() {
				if sequence > uint64(n) {
					continue
				}
				query := all[sequence-1].QueryID
				if sequence <= last[query] {
					t.Fatalf("seed %d: %d of %s comes after %d", seed, sequence, query, last[query])
				}
				last[query] = sequence
			}
			if err := stop(); err != nil || len(s.delivered()) != n+199-len(bad) || s.lastSaved() != uint64(n+200) {
				t.Errorf("seed %d: stopped with %v, %d delivered, cursor %d of %d", seed, err, len(s.delivered()), s.lastSaved(), n+200)
			}
			letters := b.list(t)
			if l := letters[0]; l.Cause != sinks.CauseAlone || l.Attempts < 10 || !strings.Contains(l.Reason, errPoison.Error()) {
				t.Errorf("seed %d: letter %s %d %s", seed, l.Cause, l.Attempts, l.Reason)
			}
		})
	}
}

// The cursor never passes an event that is set aside.
func TestTheCursorStaysAtWhatIsSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{deliver: poisoned(func(e *listener.Event) error {
			if e.Sequence == 2 {
				return errPoison
			}
			return nil
		})}
		s.fed = make(chan any, 1)
		s.fed <- lanes(4, 40)
		_, stop := s.run(t, &box{}, nil)
		time.Sleep(30 * time.Minute)
		if err := stop(); err != nil || s.lastSaved() != 2 || len(s.delivered()) != 30 {
			t.Errorf("stopped with %v, cursor %d, %d delivered; want 2 and 30", err, s.lastSaved(), len(s.delivered()))
		}
	})
}

// A destination that is down makes no dead letters, however long it is, and however
// many queries wait.
func TestADestinationThatIsDownIsNeverGivenUp(t *testing.T) {
	for _, queries := range []int{1, 2, 7} {
		synctest.Test(t, func(t *testing.T) {
			began, attempts := time.Now(), atomic.Int64{}
			s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
				if attempts.Add(1); time.Since(began) < 9*time.Hour {
					return 0, errors.New("connection refused")
				}
				return len(events), nil
			}}
			s.fed = make(chan any, 1)
			s.fed <- lanes(queries, 100)
			b := &box{}
			_, stop := s.run(t, b, nil)
			time.Sleep(9*time.Hour - time.Second)
			synctest.Wait()
			if n := attempts.Load(); n > 9*130 {
				t.Errorf("%d attempts in nine hours, want about one a minute", n)
			}
			time.Sleep(10 * time.Minute)
			if err := stop(); err != nil || len(b.sequences(t)) != 0 || len(s.delivered()) != 100 || s.lastSaved() != 101 {
				t.Errorf("%d queries: stopped with %v, %d letters, %d delivered, cursor %d", queries, err, len(b.sequences(t)), len(s.delivered()), s.lastSaved())
			}
		})
	}
}

// An event that failed alone before its destination went down is given up only once
// others go through again.
func TestWhatIsSetAsideOutlastsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		s := &script{deliver: poisoned(func(e *listener.Event) error {
			if e.Sequence == 2 || down.Load() {
				return errPoison
			}
			return nil
		})}
		s.fed = make(chan any, 1)
		s.fed <- lanes(4, 8)
		b := &box{}
		w, stop := s.run(t, b, nil)
		time.Sleep(10 * time.Minute)
		if state := w.State(); state.Aside != 2 {
			t.Errorf("state %+v, want 2 and 6 aside", state)
		}
		down.Store(true)
		for n := range uint64(6 * 60) {
			s.fed <- []listener.Event{{Sequence: 9 + n, QueryID: fmt.Sprint("q", n%3*2)}}
			time.Sleep(time.Minute)
		}
		if got := b.sequences(t); len(got) != 0 {
			t.Errorf("given up while all failed: %v", got)
		}
		down.Store(false)
		time.Sleep(10 * time.Minute)
		if err := stop(); err != nil || fmt.Sprint(b.sequences(t)) != "[2]" || len(s.delivered()) != 7+6*60 {
			t.Errorf("stopped with %v, letters %v, %d delivered", err, b.sequences(t), len(s.delivered()))
		}
	})
}

// Where there is no other query, events behind the failing one show that it is to blame.
func TestTheOnlyQueryIsNotBlockedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{deliver: poisoned(func(e *listener.Event) error {
			if e.Sequence == 3 || e.Sequence == 4 {
				return errPoison
			}
			return nil
		})}
		s.fed = make(chan any, 1)
		s.fed <- lanes(1, 9)
		b := &box{}
		_, stop := s.run(t, b, nil)
		time.Sleep(59 * time.Minute)
		synctest.Wait()
		if len(b.sequences(t)) != 0 || fmt.Sprint(s.delivered()) != "[1 2]" {
			t.Errorf("before its time: %v delivered, letters %v", s.delivered(), b.sequences(t))
		}
		time.Sleep(2 * time.Hour)
		if err := stop(); err != nil || fmt.Sprint(s.delivered(), b.sequences(t)) != "[1 2 5 6 7 8 9] [3 4]" || s.lastSaved() != 10 {
			t.Errorf("stopped with %v: %v delivered, letters %v, cursor %d", err, s.delivered(), b.sequences(t), s.lastSaved())
		}
	})
}

func TestEventsThatAreTooOldAreDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			if time.Since(began) < 90*time.Minute {
				return 0, errors.New("down")
			}
			return len(events), nil
		}}
		s.fed = make(chan any, 10)
		s.fed <- lanes(2, 4)
		b := &box{}
		_, stop := s.run(t, b, func(o *sinks.Options) { o.MaxAge = time.Hour })
		time.Sleep(80 * time.Minute)
		fresh := lanes(1, 6)[4:]
		s.fed <- fresh
		time.Sleep(15 * time.Minute)
		if err := stop(); err != nil || fmt.Sprint(s.delivered(), b.sequences(t)) != "[5 6] [1 2 3 4]" || s.lastSaved() != 7 {
			t.Errorf("stopped with %v: %v delivered, letters %v, cursor %d", err, s.delivered(), b.sequences(t), s.lastSaved())
		}
		if letters := b.list(t); letters[0].Cause != sinks.CauseExpired {
			t.Errorf("letter %+v", letters[0])
		}
	})
}

// At the bound the sink stops and says so; with room it goes on, and what was refused
// meanwhile has another try.
func TestFullDeadLettersStopTheSink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var good atomic.Bool
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			if good.Load() {
				return len(events), nil
			}
			return 0, sinks.Permanent(errors.New("gone"))
		}}
		s.fed = make(chan any, 1)
		s.fed <- lanes(2, 5)
		b := &box{max: 2}
		w, stop := s.run(t, b, nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		if state := w.State(); !errors.Is(state.Err, sinks.ErrLettersFull) || state.Next != 3 || fmt.Sprint(b.sequences(t)) != "[1 2]" {
			t.Fatalf("state %+v, letters %v", state, b.sequences(t))
		}
		if !strings.Contains(s.log.String(), sinks.ErrLettersFull.Error()) {
			t.Errorf("not said: %s", s.log.String())
		}
		good.Store(true)
		b.retry(t)
		w.Wake() // a retry makes room
		time.Sleep(time.Minute)
		if err := stop(); err != nil || fmt.Sprint(s.delivered(), b.sequences(t)) != "[1 2 4 3 5] []" || s.lastSaved() != 6 || w.State().Err != nil {
			t.Errorf("stopped with %v: %v delivered, letters %v, cursor %d\n%s", err, s.delivered(), b.sequences(t), s.lastSaved(), s.log.String())
		}
	})
}

// A crash between a dead letter and its cursor repeats neither.
func TestARestartLeavesDeadLettersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := &box{}, &script{}
		all := lanes(2, 4)
		if err := b.Add(sinks.Letter{Event: all[1], Cause: sinks.CauseRefused}); err != nil {
			t.Fatal(err)
		}
		s.fed = make(chan any, 1)
		s.fed <- all
		_, stop := s.run(t, b, nil)
		synctest.Wait()
		if err := stop(); err != nil || fmt.Sprint(s.delivered(), b.sequences(t)) != "[1 3 4] [2]" || s.lastSaved() != 5 {
			t.Errorf("stopped with %v: %v delivered, letters %v, cursor %d", err, s.delivered(), b.sequences(t), s.lastSaved())
		}
	})
}

func TestARetryThatFailsKeepsTheNewReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := &box{}, &script{deliver: func(context.Context, []listener.Event) (int, error) { return 0, errors.New("still 500") }}
		if err := b.Add(sinks.Letter{Event: lanes(1, 1)[0], Cause: sinks.CauseAlone, Reason: "old", Attempts: 5, Retry: true}); err != nil {
			t.Fatal(err)
		}
		_, stop := s.run(t, b, nil)
		synctest.Wait()
		letters := b.list(t)
		if err := stop(); err != nil || len(letters) != 1 || letters[0].Retry || letters[0].Reason != "still 500" || letters[0].Attempts != 6 {
			t.Errorf("stopped with %v, letters %+v", err, letters)
		}
	})
}
