package listener

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const startedA = `{"id":"q-a","runId":"a","name":"orders","timestamp":"2026-01-01T00:00:00.000Z"}`

// starting is a start that lasts until it is let go.
func starting(b *Bus) (finish func(document string) error) {
	let, done := make(chan string), make(chan error)
	go func() {
		done <- b.Start(context.Background(), func(context.Context) ([]byte, error) {
			if document := <-let; document != "" {
				return []byte(document), nil
			}
			return nil, nil
		})
	}()
	synctest.Wait()
	return func(document string) error {
		let <- document
		return <-done
	}
}

// openBus is an open bus with one listener to everything, with one delivery behind it.
func openBus(t *testing.T) (*spark, *Bus, *script, *heard) {
	t.Helper()
	sp, h := &spark{}, &heard{}
	b := NewBus(sp, BusOptions{})
	add(t, b, everything(h))
	t.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return sp, b, sp.opened[0], h
}

func TestSparksOwnStartComesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp, b, s, h := openBus(t)
		finish := starting(b)
		sp.set(Query{ID: "q-a", RunID: "a", Name: "orders"})
		s.push("p1", progressOf("a", 0))
		time.Sleep(7 * time.Second) // the active queries are asked meanwhile
		h.want(t)
		if err := finish(startedA); err != nil {
			t.Fatal(err)
		}
		h.want(t, "a:started", "a:progress:0")
	})
}

// An event of what runs already does not wait.
func TestAStartHoldsUpItsOwnRunOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b, s, h := openBus(t)
		s.push("p1", progressOf("b", 0))
		h.want(t, "b:started:inferred", "b:progress:0")
		finish := starting(b)
		s.push("p2", progressOf("b", 1))
		h.want(t, "b:started:inferred", "b:progress:0", "b:progress:1")
		if err := finish(startedA); err != nil {
			t.Fatal(err)
		}
		h.want(t, "b:started:inferred", "b:progress:0", "b:progress:1", "a:started")
	})
}

func TestAStartWithoutAnEventIsInferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b, s, h := openBus(t)
		finish := starting(b)
		s.push("p1", progressOf("a", 0))
		if err := finish(""); err != nil {
			t.Fatal(err)
		}
		h.want(t, "a:started:inferred", "a:progress:0")
	})
}

func TestAStartThatTakesTooLongIsInferredAndFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b, s, h := openBus(t)
		finish := starting(b)
		s.push("p1", progressOf("a", 0))
		time.Sleep(startPatience)
		h.want(t, "a:started:inferred", "a:progress:0")
		if err := finish(startedA); err != nil {
			t.Fatal(err)
		}
		h.want(t, "a:started:inferred", "a:progress:0", "a:started")
	})
}

func TestAStartFromACallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp, h := &spark{}, &heard{}
		b := NewBus(sp, BusOptions{})
		l := everything(h)
		l.OnQueryTerminated = func(e Event) {
			h.add(e)
			if err := b.Start(t.Context(), func(context.Context) ([]byte, error) {
				return []byte(strings.ReplaceAll(startedA, `"a"`, `"a2"`)), nil
			}); err != nil {
				t.Error(err)
			}
		}
		add(t, b, l)
		sp.opened[0].push("p1", progressOf("a", 0), terminatedOf("a"))
		h.want(t, "a:started:inferred", "a:progress:0", "a:terminated", "a2:started")
		if err := b.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAStartThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b, s, h := openBus(t)
		failed := errors.New("no such table")
		if err := b.Start(t.Context(), func(context.Context) ([]byte, error) { return nil, failed }); !errors.Is(err, failed) {
			t.Errorf("Start = %v", err)
		}
		for _, document := range []string{"{", "{}", `{"id":"q-a","runId":"a"}`} {
			if err := b.Start(t.Context(), func(context.Context) ([]byte, error) { return []byte(document), nil }); err == nil {
				t.Errorf("%s was taken", document)
			}
		}
		s.push("p1", progressOf("a", 0))
		h.want(t, "a:started:inferred", "a:progress:0")
	})
}

func TestAStartWithoutListeners(t *testing.T) {
	b := NewBus(&spark{}, BusOptions{})
	ran := false
	if err := b.Start(t.Context(), func(context.Context) ([]byte, error) { ran = true; return []byte("{"), nil }); err != nil || !ran {
		t.Errorf("ran %v, %v", ran, err)
	}
}

// Polling tells Spark's own start as well, and at once.
func TestAStartWhilePolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sp := &spark{}
		f, got := feedOf(nil, sp)
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan error)
		go func() { over <- f.Poll(ctx) }()
		synctest.Wait()
		if err := f.Admission.Start(ctx, func(context.Context) ([]byte, error) {
			sp.set(Query{ID: "q-a", RunID: "a", Name: "orders"})
			time.Sleep(8 * time.Second)
			return []byte(startedA), nil
		}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		stop()
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("poll: %v", err)
		}
		wantIDs(t, *got, "a:started")
		if e := (*got)[0]; e.Origin != OriginClient || e.Kind != KindStarted || e.Name != "orders" || e.Source != "etl" || string(e.Payload) != startedA || e.Time.Year() != 2026 {
			t.Errorf("%+v", e)
		}
	})
}
