package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
)

// A day of one event a minute, in a journal that keeps two hours of it. One
// sink is well all the time; the other is down from the fourth hour to the tenth, over
// a restart of the bridge, and so loses what is older than the journal keeps.
func TestADayOfRetention(t *testing.T) {
	const (
		keep    = 2 * time.Hour
		every   = time.Minute
		segment = 4 << 10
		most    = 48 << 10 // less than two hours of the last six
	)
	synctest.Test(t, func(t *testing.T) {
		dir, log, began := t.TempDir(), &lines{}, time.Now()
		down := func() bool { at := time.Since(began); return at > 4*time.Hour && at < 10*time.Hour }
		well, sick := &receiver{}, &receiver{refuse: func(listener.Event) error {
			if down() {
				return errors.New("connection refused")
			}
			return nil
		}}
		var j *journal.Journal
		var stop func()
		start := func() {
			var err error
			if j, err = journal.Open(dir, journal.Options{SegmentBytes: segment, MaxAge: keep, MaxBytes: most}); err != nil {
				t.Fatal(err)
			}
			sink := func(name string) configs.Sink {
				return configs.Sink{Name: name, From: configs.FromOldest, GiveUp: time.Hour, DeadLetters: configs.DeadLetters{Max: 10}}
			}
			a, stopWell := deliverTo(t, j, sink("well"), well, log)
			b, stopSick := deliverTo(t, j, sink("sick"), sick, log)
			k := &keeper{cfg: configs.Journal{WhenFull: configs.WhenFullDropOldest, MaxBytes: most}, journal: j, outlets: []*outlet{a, b}, log: slog.New(slog.NewTextHandler(log, nil))}
			ctx, cancel := context.WithCancel(context.Background())
			kept := make(chan struct{})
			go func() { k.run(ctx); close(kept) }()
			stop = func() {
				cancel()
				<-kept
				stopWell()
				stopSick()
				if err := j.Close(); err != nil {
					t.Error(err)
				}
			}
		}

		start()
		batches := 0
		for ; time.Since(began) < 24*time.Hour; batches++ {
			e := progressOf("ab"[batches%2:batches%2+1], int64(batches/2))
			e.Source, e.Origin, e.Payload = "etl", listener.OriginBus, fmt.Appendf(nil, `{"batchId":%d,"text":"%s"}`, batches/2, strings.Repeat("x", 100+batches%400))
			if time.Since(began) > 18*time.Hour {
				e.Payload = append(e.Payload, strings.Repeat(" ", 500)...)
			}
			if _, err := j.Append(t.Context(), listener.EncodeRecord(e)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(every)
			if st := j.Stats(); st.Bytes > most+segment+2000 || time.Since(st.Oldest) > keep+20*time.Minute {
				t.Fatalf("after %s the journal has %d bytes, and the oldest record is %s old", time.Since(began), st.Bytes, time.Since(st.Oldest))
			}
			if batches == 7*60 {
				stop()
				start()
			}
		}
		time.Sleep(time.Minute)
		if first := j.Stats().First; first < uint64(batches-120) {
			t.Errorf("the journal still begins at %d of %d: two hours of large events are more than it may take", first, batches)
		}
		stop()

		want := 0
		for i, e := range well.got {
			if e.ID != fmt.Sprintf("%c:progress:%d", "ab"[want%2], want/2) {
				t.Fatalf("the sink that is well got %s as its event %d", e.ID, i)
			}
			want++
		}
		if want != batches {
			t.Errorf("the sink that is well got %d of %d events", want, batches)
		}
		gaps := checkNamed(t, sick.got, int64(batches/2))
		if gaps < 2 || log.count("events lost to retention") == 0 || log.count("sink=well") != 0 {
			t.Errorf("%d gaps of the sink that was down, log %s", gaps, log)
		}
	})
}

// checkNamed checks that each batch up to a number came, or was named by a gap event
// before those that follow it. It returns how many gap events there were.
func checkNamed(t *testing.T, got []listener.Event, batches int64) (gaps int) {
	t.Helper()
	next, delivered := map[string]int64{}, map[string]bool{}
	for _, e := range got {
		from, to := e.BatchID, e.BatchID
		if e.Kind == listener.KindGap {
			gaps++
			if _, err := fmt.Sscanf(e.ID[len("a:gap:"):], "%d-%d", &from, &to); err != nil || !strings.Contains(string(e.Payload), `"reason":"retention"`) {
				t.Fatalf("gap event %s: %s", e.ID, e.Payload)
			}
			for batch := from; batch <= to; batch++ {
				if delivered[fmt.Sprint(e.QueryID, batch)] {
					t.Errorf("%s names batch %d, which came", e.ID, batch)
				}
			}
		} else {
			delivered[fmt.Sprint(e.QueryID, from)] = true
		}
		if from > next[e.QueryID] {
			t.Fatalf("%s follows batch %d: what is between was neither delivered nor named", e.ID, next[e.QueryID]-1)
		}
		next[e.QueryID] = max(next[e.QueryID], to+1)
	}
	for query, n := range next {
		if n != batches {
			t.Errorf("query %s ends before batch %d of %d", query, n, batches)
		}
	}
	return gaps
}
