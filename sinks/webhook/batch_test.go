package webhook_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sparkbridge/sinks"
	"sparkbridge/sinks/webhook"
)

// batches remembers the ids of each request, and refuses those with bad events.
type batches struct {
	mu       sync.Mutex
	requests [][]string
	ids      []string // webhook-id
	bad      []string
	code     int
}

func (b *batches) answer(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []struct{ ID string }
	if r.Header.Get("Content-Type") != "application/cloudevents-batch+json; charset=utf-8" || json.NewDecoder(r.Body).Decode(&all) != nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	var ids []string
	for _, e := range all {
		ids = append(ids, e.ID)
		if slices.Contains(b.bad, e.ID) {
			w.WriteHeader(b.code)
		}
	}
	b.requests, b.ids = append(b.requests, ids), append(b.ids, r.Header.Get("webhook-id"))
}

func (b *batches) sizes() (sizes []int) {
	for _, ids := range b.requests {
		sizes = append(sizes, len(ids))
	}
	return sizes
}

func TestBatches(t *testing.T) {
	b := &batches{}
	sink, _ := serve(t, webhook.Config{Batch: webhook.Batch{MaxEvents: 4}}, b.answer)
	all := events(5, "a", "b")
	if acked, err := sink.Deliver(t.Context(), all); acked != 10 || err != nil {
		t.Fatalf("%d, %v", acked, err)
	}
	if !slices.Equal(b.sizes(), []int{4, 4, 2}) || slices.Concat(b.requests...)[9] != all[9].ID {
		t.Errorf("posted %v", b.requests)
	}
	again := slices.Clone(b.ids)
	if _, err := sink.Deliver(t.Context(), all); err != nil || !slices.Equal(b.ids[3:], again) || again[0] == again[1] || !strings.HasPrefix(again[0], "batch-") {
		t.Errorf("ids %q, %v", b.ids, err)
	}
}

// The event that is to blame is found, those before it are through, and nothing
// behind it is sent.
func TestRefusedBatchIsHalved(t *testing.T) {
	all := events(16, "a")
	for bad := range all {
		b := &batches{bad: []string{all[bad].ID}, code: http.StatusUnprocessableEntity}
		sink, _ := serve(t, webhook.Config{Batch: webhook.Batch{MaxEvents: 16}}, b.answer)
		acked, err := sink.Deliver(t.Context(), all)
		if acked != bad || !sinks.IsPermanent(err) {
			t.Errorf("event %d is bad: %d acknowledged, %v", bad, acked, err)
		}
		if len(b.requests) > 10 {
			t.Errorf("event %d is bad: %d requests", bad, len(b.requests))
		}
	}
}

// A receiver that is sick is not asked for every half.
func TestFailedBatchIsNotHalved(t *testing.T) {
	all := events(16, "a")
	b := &batches{bad: []string{all[3].ID}, code: http.StatusServiceUnavailable}
	sink, _ := serve(t, webhook.Config{Batch: webhook.Batch{MaxEvents: 16}}, b.answer)
	if acked, err := sink.Deliver(t.Context(), all); acked != 0 || err == nil || sinks.IsPermanent(err) || len(b.requests) != 1 {
		t.Errorf("%d acknowledged, %d requests, %v", acked, len(b.requests), err)
	}
}

func TestBatchesGather(t *testing.T) {
	const wait = 100 * time.Millisecond
	b := &batches{}
	sink, _ := serve(t, webhook.Config{Batch: webhook.Batch{MaxEvents: 4, MaxWait: wait}}, b.answer)
	began := time.Now()
	if _, err := sink.Deliver(t.Context(), events(3, "a")); err != nil || time.Since(began) < wait {
		t.Errorf("returned after %s, %v", time.Since(began), err)
	}
}

// A stop does not wait for more events, and what was acknowledged counts.
func TestStopEndsGathering(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	sink, _ := serve(t, webhook.Config{Batch: webhook.Batch{MaxEvents: 4, MaxWait: 30 * time.Second}}, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.AfterFunc(50*time.Millisecond, cancel) // the answer is there by then; if not, the event is repeated
	})
	began := time.Now()
	acked, err := sink.Deliver(ctx, events(1, "a"))
	if took := time.Since(began); took > 20*time.Second || acked == 1 && err != nil {
		t.Errorf("%d acknowledged after %s, %v", acked, took, err)
	}
}
