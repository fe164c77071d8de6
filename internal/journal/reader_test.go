package journal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestNewReaderKnowsTheBounds(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{})
	mustAppend(t, j, "a", "b")
	for next, want := range map[uint64]bool{0: false, 1: true, 2: true, 3: true, 4: false, 1 << 60: false} {
		_, err := j.NewReader(next)
		if (err == nil) != want {
			t.Errorf("NewReader(%d): %v", next, err)
		}
		if next > 3 && !errors.Is(err, ErrBeyondEnd) {
			t.Errorf("NewReader(%d): %v, want ErrBeyondEnd", next, err)
		}
	}
}

func TestNextWaitsAndCancels(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		j := mustOpen(t, dir, Options{SegmentBytes: 100})
		r := mustReader(t, j, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if list, err := r.Next(ctx, 10, 10); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Next of an empty log: %v, %v", list, err)
		}
		for i := range 5 { // each in a segment of its own
			got := make(chan string)
			go func() {
				list, err := r.Next(t.Context(), 10, 10)
				got <- fmt.Sprint(len(list), err, list[0].Sequence, string(list[0].Body))
			}()
			synctest.Wait()
			select {
			case s := <-got:
				t.Fatalf("Next did not wait: %s", s)
			default:
			}
			mustAppend(t, j, strings.Repeat("x", 80))
			if s, want := <-got, fmt.Sprint(1, nil, i+1, strings.Repeat("x", 80)); s != want {
				t.Fatalf("Next: %s, want %s", s, want)
			}
		}
	})
}

func TestNextKeepsToItsLimits(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{})
	mustAppend(t, j, "aaaa", "bb", "cc", "dddddddd", "e")
	for _, c := range []struct {
		next, records, bytes int
		want                 string
	}{
		{1, 100, 100, "aaaa bb cc dddddddd e"},
		{1, 2, 100, "aaaa bb"},
		{1, 100, 8, "aaaa bb cc"},
		{1, 100, 7, "aaaa bb"},
		{4, 100, 3, "dddddddd"},
		{1, 0, 0, "aaaa"},
		{5, 1, 1, "e"},
	} {
		list, err := mustReader(t, j, uint64(c.next)).Next(t.Context(), c.records, c.bytes)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(bodiesOf(t, list, uint64(c.next)), " "); got != c.want {
			t.Errorf("Next(%d, %d) at %d: %q, want %q", c.records, c.bytes, c.next, got, c.want)
		}
	}
}

func TestBodiesBelongToTheReceiver(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{})
	mustAppend(t, j, "one", "two", "three")
	r := mustReader(t, j, 1)
	a, err := r.Next(t.Context(), 1, 100)
	if err != nil {
		t.Fatal(err)
	}
	copy(a[0].Body, "XXX")
	_ = append(a[0].Body, "overflow over what follows"...)
	b, err := r.Next(t.Context(), 2, 100)
	if err != nil || string(b[0].Body) != "two" || string(b[1].Body) != "three" || string(a[0].Body) != "XXX" {
		t.Errorf("read %v, %v", b, err)
	}
}

// A reader can begin anywhere: near an index entry, between two, in a segment
// that has been reopened and has no index.
func TestReadersBeginAnywhere(t *testing.T) {
	dir := t.TempDir()
	o := Options{SegmentBytes: 6 * indexStep}
	j := mustOpen(t, dir, o)
	const n = 500
	for i := 0; i < n; i += 5 {
		body := strings.Repeat("x", 3*indexStep/20)
		mustAppend(t, j, fmt.Sprint(i, body), fmt.Sprint(i+1, body), fmt.Sprint(i+2, body), fmt.Sprint(i+3), fmt.Sprint(i+4))
	}
	look := func(j *Journal) {
		for next := range uint64(n) {
			r, err := j.NewReader(next + 1)
			if err != nil {
				t.Fatal(err)
			}
			list, err := r.Next(t.Context(), 1, 1)
			if err != nil || list[0].Sequence != next+1 || !strings.HasPrefix(string(list[0].Body), fmt.Sprint(next)) {
				t.Fatalf("reader at %d: %v, %v", next+1, list[0].Sequence, err)
			}
			_ = r.Close()
		}
	}
	if len(j.segments[0].index) < 3 {
		t.Errorf("the index of a segment of %d bytes has %d entries", j.segments[0].size, len(j.segments[0].index))
	}
	look(j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	look(mustOpen(t, dir, o))
}

func TestReadersBesideAppendsAndRetention(t *testing.T) {
	j := mustOpen(t, t.TempDir(), Options{SegmentBytes: 4 << 10, MaxBytes: 40 << 10})
	const writers, each = 4, 400
	const total = writers * each
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if _, err := j.Append(t.Context(), fmt.Append(nil, w, "-", i, strings.Repeat("x", 100))); err != nil {
					t.Error(err)
				}
				if i%20 == 0 {
					_, next := j.Bounds()
					if err := j.Retain(next); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	for seed := range uint64(3) {
		r := mustReader(t, j, 1)
		rnd := rand.New(rand.NewPCG(seed, 0))
		wg.Go(func() {
			for next := uint64(1); next <= total; {
				list, err := r.Next(t.Context(), 1+rnd.IntN(50), rnd.IntN(4000))
				var gone *RetiredError
				if errors.As(err, &gone) {
					if gone.From != next || gone.To < next {
						t.Errorf("at %d: %v", next, err)
						return
					}
					next = gone.To + 1
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				bodiesOf(t, list, next)
				next += uint64(len(list))
			}
		})
	}
	wg.Wait()
}
