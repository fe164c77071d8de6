package sinks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// old are events of which each has expired.
func old(n int) (list []listener.Event) {
	list = lanes(3, n)
	for i := range list {
		list[i].Recorded = time.Now().Add(-24 * time.Hour)
	}
	return list
}

func expiring(o *sinks.Options) { o.MaxAge = time.Hour }

// upTo are the numbers from 1.
func upTo(n uint64) (list []uint64) {
	for i := range n {
		list = append(list, i+1)
	}
	return list
}

// Of many letters at once as many are stored as there is room for. The rest waits, none
// is lost or stored twice, and what does not fit is not tried as a whole again and again.
func TestLettersAreStoredAsThereIsRoom(t *testing.T) {
	for _, room := range []int{0, 1, 2, 100, 255, 256, 300, 399} {
		synctest.Test(t, func(t *testing.T) {
			b, s := &box{max: room}, &script{fed: make(chan any, 1)}
			if room == 0 { // full already
				b.max = 1
				if err := b.Add(letterOf(1000)); err != nil {
					t.Fatal(err)
				}
			}
			s.fed <- old(400)
			w, stop := s.run(t, b, expiring)
			time.Sleep(time.Second)
			synctest.Wait()
			before := slices.DeleteFunc(b.sequences(t), func(n uint64) bool { return n == 1000 })
			if state := w.State(); !slices.Equal(before, upTo(uint64(room))) || state.Buried != uint64(room) || !errors.Is(state.Err, sinks.ErrLettersFull) {
				t.Fatalf("room for %d: letters %v, state %+v", room, before, state)
			}
			if adds := b.adds(); len(adds) > 50 {
				t.Errorf("room for %d: %d tries to store: %v", room, len(adds), adds)
			}
			time.Sleep(time.Hour)
			if adds := b.adds(); len(adds) > 721 || slices.Max(adds) > 1 {
				t.Errorf("room for %d: in an hour it was tried to store %v", room, adds)
			}
			b.bound(1000)
			time.Sleep(time.Minute)
			synctest.Wait()
			if adds := b.adds(); len(adds) > 12 {
				t.Errorf("room for %d: it took %v to store the rest", room, adds)
			}
			after := slices.DeleteFunc(b.sequences(t), func(n uint64) bool { return n == 1000 })
			if state := w.State(); !slices.Equal(after, upTo(400)) || state.Buried != 400 || state.Err != nil || state.Next != 401 {
				t.Errorf("room for %d: in the end letters %v, state %+v", room, after, state)
			}
			if err := stop(); err != nil || len(s.delivered()) != 0 || strings.Count(s.log.String(), "event is among the dead letters") != 400 {
				t.Errorf("room for %d: stopped with %v, delivered %v", room, err, s.delivered())
			}
		})
	}
}

func letterOf(sequence uint64) sinks.Letter {
	return sinks.Letter{Event: listener.Event{Sequence: sequence, ID: fmt.Sprint(sequence)}, Cause: sinks.CauseRefused, Attempts: 1}
}

// A stop does not wait for room. What has become a letter stays one, and the next run
// goes on with the rest.
func TestAStopWhileLettersAreFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, s := &box{max: 7}, &script{fed: make(chan any, 1)}
		all := old(20)
		s.fed <- all
		_, stop := s.run(t, b, expiring)
		time.Sleep(time.Hour + time.Second)
		at := time.Now()
		if err := stop(); err != nil || !time.Now().Equal(at) || s.lastSaved() > 8 || !slices.Equal(b.sequences(t), upTo(7)) {
			t.Fatalf("stopped with %v after %s, cursor %d, letters %v", err, time.Since(at), s.lastSaved(), b.sequences(t))
		}
		b.bound(100)
		s.fed <- all[max(1, s.lastSaved())-1:]
		w, stop := s.run(t, b, expiring)
		synctest.Wait()
		if state := w.State(); !slices.Equal(b.sequences(t), upTo(20)) || state.Buried != 13 || state.Next != 21 {
			t.Errorf("letters %v, state %+v", b.sequences(t), state)
		}
		if err := stop(); err != nil || len(s.delivered()) != 0 || s.lastSaved() != 21 {
			t.Errorf("stopped with %v, delivered %v, cursor %d", err, s.delivered(), s.lastSaved())
		}
	})
}

// shut is a box whose replays cannot be opened at first.
type shut struct {
	*box
	closed atomic.Bool
}

func (b *shut) Open(from, to uint64) (sinks.Source, func() error, error) {
	if b.closed.Load() {
		return nil, nil, errors.New("no more files")
	}
	return b.box.Open(from, to)
}

// What is asked for while a sink waits for room is done as soon as there is some: what
// it was woken for, and what was put off.
func TestWhatIsAskedForWhileLettersAreFull(t *testing.T) {
	for _, before := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b, s := &shut{box: &box{max: 2, journal: lanes(1, 3)}}, &script{fed: make(chan any, 1)}
			b.closed.Store(true)
			if before {
				b.ask(sinks.Replay{ID: "r1", From: 1, To: 4})
			}
			w, stop := s.run(t, b.box, func(o *sinks.Options) { o.MaxAge, o.Replays = time.Hour, b })
			synctest.Wait()
			s.fed <- old(5)
			time.Sleep(10 * time.Minute)
			b.closed.Store(false)
			if !before {
				b.ask(sinks.Replay{ID: "r1", From: 1, To: 4})
				w.Wake()
			}
			time.Sleep(10 * time.Minute)
			b.bound(100)
			time.Sleep(time.Minute)
			if err := stop(); err != nil || len(b.asked()) != 0 || fmt.Sprint(s.delivered()) != "[1 2 3]" || len(b.sequences(t)) != 5 {
				t.Errorf("put off before: %t, stopped with %v, replays %v, delivered %v, letters %v", before, err, b.asked(), s.delivered(), b.sequences(t))
			}
		})
	}
}

// An event that is refused after it has failed alone counts all its attempts.
func TestAnEventThatIsRefusedInTheEndCountsItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, tries, began := &box{}, 0, time.Now()
		s := &script{fed: make(chan any, 2), deliver: func(_ context.Context, events []listener.Event) (int, error) {
			switch {
			case events[0].Sequence != 1:
				return len(events), nil
			case time.Since(began) > 10*time.Minute:
				tries++
				return 0, sinks.Permanent(errors.New("400"))
			}
			tries++
			return 0, errPoison
		}}
		s.fed <- lanes(2, 1)
		s.fed <- lanes(2, 2)[1:]
		_, stop := s.run(t, b, nil)
		time.Sleep(20 * time.Minute)
		if list := b.list(t); len(list) != 1 || list[0].Attempts != tries || tries < 10 || list[0].Cause != sinks.CauseRefused {
			t.Errorf("after %d tries: %+v", tries, list)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A replay that waits for room can be cancelled.
func TestAReplayIsCancelledWhileLettersAreFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{max: 1, journal: lanes(1, 3), replays: []sinks.Replay{{ID: "r1", From: 1, To: 4}}}
		s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
			if events[0].Replay != "" {
				return 0, sinks.Permanent(errors.New("400"))
			}
			return len(events), nil
		}}
		w, stop := s.run(t, b, nil)
		s.fed <- lanes(1, 5)[3:]
		time.Sleep(time.Hour)
		if state := w.State(); !errors.Is(state.Err, sinks.ErrLettersFull) || state.Replay != "r1" {
			t.Fatalf("state %+v", state)
		}
		_ = b.Finish("r1")
		w.Wake()
		synctest.Wait()
		if state := w.State(); state.Err != nil || state.Replay != "" {
			t.Errorf("state %+v", state)
		}
		if err := stop(); err != nil || fmt.Sprint(s.delivered(), b.sequences(t)) != "[4 5] [1]" {
			t.Errorf("stopped with %v, delivered %v, letters %v", err, s.delivered(), b.sequences(t))
		}
	})
}

// A letter that is to be tried again really is, and keeps count. So does an event that
// was refused when there was no room: it is tried with it.
func TestARefusedRetryCountsItsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &box{max: 1}
		var tried []string
		s := &script{fed: make(chan any, 1), deliver: func(_ context.Context, events []listener.Event) (int, error) {
			tried = append(tried, events[0].ID)
			return 0, sinks.Permanent(fmt.Errorf("refusal %d", len(tried)))
		}}
		s.fed <- lanes(1, 2)
		w, stop := s.run(t, b, nil)
		time.Sleep(time.Hour)
		synctest.Wait()
		if fmt.Sprint(tried) != "[1 2]" {
			t.Fatalf("tried %v; nothing was asked for", tried)
		}
		for retries := 1; retries <= 2; retries++ {
			b.retry(t)
			w.Wake()
			time.Sleep(time.Hour)
			synctest.Wait()
			if l := b.list(t)[0]; l.Event.Sequence != 1 || l.Attempts != 1+retries || l.Retry || l.Cause != sinks.CauseRefused ||
				l.Reason != fmt.Sprint("refusal ", 2*retries+1) || !l.Time.Equal(time.Now().Add(-time.Hour)) {
				t.Errorf("after retry %d: %+v", retries, l)
			}
		}
		if err := b.Drop(1); err != nil {
			t.Fatal(err)
		}
		w.Wake()
		synctest.Wait()
		if l := b.list(t)[0]; l.Event.Sequence != 2 || l.Attempts != 3 && l.Attempts != 4 || l.Attempts+3 != len(tried) {
			t.Errorf("after tries of %v: %+v", tried, l)
		}
		if err := stop(); err != nil || s.lastSaved() != 3 {
			t.Errorf("stopped with %v, cursor %d", err, s.lastSaved())
		}
	})
}
