package listener

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// heard collects what a listener was told.
type heard struct {
	mu  sync.Mutex
	ids []string
}

func (h *heard) add(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ids = append(h.ids, e.ID)
}

func (h *heard) want(t *testing.T, ids ...string) {
	t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Equal(h.ids, ids) {
		t.Errorf("heard %v, want %v", h.ids, ids)
	}
}

func everything(h *heard) *Listener {
	return &Listener{OnQueryStarted: h.add, OnQueryProgress: h.add, OnQueryIdle: h.add, OnQueryTerminated: h.add}
}

func TestBusOpensWithTheFirstListenerAndClosesWithTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp := &spark{}
		b := NewBus(sp, BusOptions{})
		var h1, h2 heard
		l1, l2 := everything(&h1), &Listener{OnQueryIdle: h2.add}
		add(t, b, l1)
		add(t, b, l2)
		add(t, b, l2)
		if len(sp.opened) != 1 {
			t.Fatalf("%d buses opened", len(sp.opened))
		}
		s := sp.opened[0]
		s.push("p1", progressOf("a", 0), idleOf("a", 1))
		h1.want(t, "a:started:inferred", "a:progress:0", "a:idle:1767225661000")
		h2.want(t, "a:idle:1767225661000")

		b.Remove(l1)
		s.push("p2", idleOf("a", 2))
		h2.want(t, "a:idle:1767225661000", "a:idle:1767225662000")
		if h1.want(t, "a:started:inferred", "a:progress:0", "a:idle:1767225661000"); s.closed {
			t.Error("closed though a listener is left")
		}
		b.Remove(l2)
		synctest.Wait()
		if !s.finished || !s.closed {
			t.Error("not closed with the last listener")
		}

		add(t, b, l1) // opens anew, and repeats nothing
		sp.opened[1].push("p1", idleOf("a", 2), idleOf("a", 3))
		h1.want(t, "a:started:inferred", "a:progress:0", "a:idle:1767225661000", "a:idle:1767225663000")
		if err := b.Close(t.Context()); err != nil || !sp.opened[1].closed {
			t.Errorf("close: %v", err)
		}
		if err := b.Close(t.Context()); err != nil {
			t.Errorf("second close: %v", err)
		}
	})
}

func add(t *testing.T, b *Bus, l *Listener) {
	t.Helper()
	if err := b.Add(t.Context(), l); err != nil {
		t.Fatal(err)
	}
}

func TestBusTellsWhenItIsLostAndOpensAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp := &spark{}
		var lost []error
		b := NewBus(sp, BusOptions{OnLost: func(err error) { lost = append(lost, err) }})
		var h heard
		l := everything(&h)
		add(t, b, l)
		sp.opened[0].fail(errGone)
		synctest.Wait()
		if len(lost) != 1 || !errors.Is(lost[0], errGone) || !sp.opened[0].closed {
			t.Fatalf("lost: %v", lost)
		}
		add(t, b, l)
		sp.opened[1].push("p1", idleOf("a", 1))
		h.want(t, "a:started:inferred", "a:idle:1767225661000")
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if len(lost) != 1 {
			t.Errorf("a bus that was closed is reported as lost: %v", lost)
		}
	})
}

func TestAListenerThatFailsToOpenTheBusIsNotAdded(t *testing.T) {
	taken := errors.New("taken")
	b := NewBus(&spark{openErr: taken}, BusOptions{})
	if err := b.Add(t.Context(), &Listener{}); !errors.Is(err, taken) {
		t.Errorf("add: %v", err)
	}
	if len(b.listeners) != 0 {
		t.Error("the listener was added")
	}
}

func TestCallbacksRunOneAtATimeAndMayRemoveAndPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp := &spark{}
		b := NewBus(sp, BusOptions{})
		var h heard
		inside := 0
		var once *Listener
		once = &Listener{OnQueryIdle: func(Event) { b.Remove(once) }, OnQueryProgress: func(Event) { panic("poison") }}
		slow := &Listener{OnQueryProgress: func(e Event) {
			inside++
			if inside != 1 {
				t.Error("two callbacks at a time")
			}
			time.Sleep(time.Second)
			inside--
			h.add(e)
		}}
		add(t, b, once)
		add(t, b, slow)
		s := sp.opened[0]
		s.push("p1", progressOf("a", 0), progressOf("a", 1), idleOf("a", 1), progressOf("a", 2))
		time.Sleep(5 * time.Second)
		h.want(t, "a:progress:0", "a:progress:1", "a:progress:2")
		if len(b.listeners) != 1 {
			t.Error("the callback did not remove its listener")
		}
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAddAndRemoveRace(t *testing.T) {
	sp := &spark{}
	b := NewBus(sp, BusOptions{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				l := &Listener{}
				if err := b.Add(context.Background(), l); err != nil {
					t.Error(err)
				}
				b.Remove(l)
			}
		})
	}
	wg.Wait()
	if err := b.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	for i, s := range sp.opened {
		if !s.closed {
			t.Errorf("opening %d of %d was not closed", i, len(sp.opened))
		}
	}
}

// A callback may put another listener in the place of the last one; the bus stays open.
func TestAListenerIsReplacedInACallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp := &spark{}
		b := NewBus(sp, BusOptions{})
		var h heard
		second := &Listener{OnQueryIdle: h.add}
		var first *Listener
		first = &Listener{OnQueryIdle: func(Event) {
			b.Remove(first)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := b.Add(ctx, second); err != nil {
				t.Errorf("add in a callback: %v", err)
			}
		}}
		add(t, b, first)
		sp.opened[0].push("p1", idleOf("a", 1), idleOf("a", 2))
		if h.want(t, "a:idle:1767225662000"); sp.opened[0].closed {
			t.Error("the bus was closed in between")
		}
		if err := b.Close(t.Context()); err != nil || !sp.opened[0].closed {
			t.Errorf("close: %v", err)
		}
	})
}
