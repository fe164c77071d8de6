package listener

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pollFeed runs a polling feed in the background; stop ends it.
func pollFeed(t *testing.T, f *Feed) (stop func()) {
	t.Helper()
	done := make(chan error, 1)
	ctx, cancel := contextOf(t)
	go func() { done <- f.Poll(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-done; !errors.Is(err, ctx.Err()) {
			t.Errorf("poll: %v", err)
		}
	}
}

func TestPollingTellsTheWholeLifeOfARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp := &spark{}
		f, got := feedOf(nil, sp)
		stop := pollFeed(t, f)
		sp.set(Query{ID: "q-a", RunID: "a", Name: "n-a"})
		sp.keeps("a", -1, 0, 1)
		time.Sleep(time.Minute)
		sp.keeps("a", 2, -5)
		sp.set()
		time.Sleep(2 * time.Minute)
		stop()
		wantIDs(t, *got, "a:started:inferred", "a:progress:0", "a:progress:1", "a:progress:2", "a:idle:1767225665000", "a:terminated:inferred")
		if (*got)[1].Origin != OriginPoll || (*got)[5].Outcome != OutcomeStopped {
			t.Errorf("origin %s, outcome %s", (*got)[1].Origin, (*got)[5].Outcome)
		}
	})
}

// Spark keeps 99 documents; a query at 20 batches a second fills that in 5 s.
func TestPollingMissesNoBatchOfAFastQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp := &spark{active: []Query{{ID: "q-a", RunID: "a", Name: "n-a"}}}
		f, got := feedOf(nil, sp)
		stop := pollFeed(t, f)
		for batch := range 2000 {
			sp.keeps("a", batch)
			sp.change(func() {
				if d := sp.recent["a"]; len(d) > recentKept {
					sp.recent["a"] = d[len(d)-recentKept:]
				}
			})
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		stop()
		if len(*got) != 2001 {
			t.Errorf("%d events, want a start and 2000 batches", len(*got))
		}
		for i, e := range (*got)[1:] {
			if e.ID != fmt.Sprintf("a:progress:%d", i) {
				t.Fatalf("event %d is %s", i, e.ID)
			}
		}
		if sp.recents > 600 {
			t.Errorf("asked %d times in 100 s", sp.recents)
		}
	})
}

func TestPollingIsLightOnAQuietSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp := &spark{}
		f, _ := feedOf(nil, sp)
		stop := pollFeed(t, f)
		time.Sleep(time.Hour)
		stop()
		if sp.asked > 130 {
			t.Errorf("asked %d times in an hour in which nothing ran", sp.asked)
		}
	})
}

func TestPollingOutlivesAServerThatDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp := &spark{active: []Query{{ID: "q-a", RunID: "a"}}}
		sp.keeps("a", 0)
		f, got := feedOf(nil, sp)
		stop := pollFeed(t, f)
		time.Sleep(10 * time.Second)
		sp.change(func() { sp.err, sp.asked = errors.New("unavailable"), 0 })
		time.Sleep(time.Minute)
		synctest.Wait()
		if sp.asked < 5 || sp.asked > 20 {
			t.Errorf("asked %d times in a minute without an answer", sp.asked)
		}
		sp.change(func() { sp.err = nil })
		sp.keeps("a", 1)
		time.Sleep(20 * time.Second)
		stop()
		wantIDs(t, *got, "a:started:inferred", "a:progress:0", "a:progress:1")
	})
}

// From the bus to polling and back nothing is lost or repeated.
func TestBusAndPollingFollowEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp := &spark{active: []Query{{ID: "q-a", RunID: "a", Name: "n-a"}}}
		admission := NewAdmission(Session{Source: "etl"})
		var all []string
		batch := 0
		for round := range 6 {
			s := newScript()
			f, got := feedOf(s, sp)
			f.Admission, f.NewBus = admission, true
			run := runFeed
			if round%2 == 1 {
				run = pollFeed
			}
			stop := run(t, f)
			for range 5 {
				sp.keeps("a", batch)
				if round%2 == 0 {
					s.push(fmt.Sprint("p", batch), progressOf("a", int64(batch)))
				}
				batch++
				time.Sleep(3 * time.Second)
			}
			time.Sleep(5 * time.Second)
			stop()
			sp.keeps("a", batch) // while nobody listens
			batch++
			all = append(all, ids(*got)...)
		}
		want := []string{"a:started:inferred"}
		for b := range batch - 1 { // the last one came after all
			want = append(want, fmt.Sprintf("a:progress:%d", b))
		}
		if strings.Join(all, " ") != strings.Join(want, " ") {
			t.Errorf("\n got %v\nwant %v", all, want)
		}
	})
}
