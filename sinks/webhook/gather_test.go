package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// pipes are connections in memory: one end for who dials, the other for a server.
type pipes struct {
	ends   chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case end := <-p.ends:
		return end, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.IPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.ends <- theirs
	return ours, nil
}

// arrival is one request that was answered with 200.
type arrival struct {
	at        time.Time
	sequences []int
}

// hall is a receiver in memory, and the journal of the worker that delivers to it.
type hall struct {
	sink *Sink
	feed chan []listener.Event
	code func(sequences []int) int // nil: 200
	took time.Duration             // to answer

	mu       sync.Mutex
	arrivals []arrival
}

func (h *hall) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var all []struct{ ID string }
	if err := json.NewDecoder(r.Body).Decode(&all); err != nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	a := arrival{at: time.Now()}
	for _, e := range all {
		var n int
		_, _ = fmt.Sscan(e.ID, &n)
		a.sequences = append(a.sequences, n)
	}
	time.Sleep(h.took)
	if h.code != nil {
		if code := h.code(a.sequences); code != http.StatusOK {
			w.WriteHeader(code)
			return
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.arrivals = append(h.arrivals, a)
}

// sizes are how many events each request had.
func (h *hall) sizes() (sizes []int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.arrivals {
		sizes = append(sizes, len(a.sequences))
	}
	return sizes
}

// after is how long after a time an event has arrived.
func (h *hall) after(t *testing.T, sequence int, since time.Time) time.Duration {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.arrivals {
		if slices.Contains(a.sequences, sequence) {
			return a.at.Sub(since)
		}
	}
	t.Fatalf("event %d has not arrived", sequence)
	return 0
}

// Next hands out what was fed, up to what fits, as a journal does.
func (h *hall) Next(ctx context.Context, most, _ int) ([]listener.Event, error) {
	var events []listener.Event
	select {
	case events = <-h.feed:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		select {
		case more := <-h.feed:
			if events = append(events, more...); len(events) < most {
				continue
			}
		default:
		}
		return events, nil
	}
}

func (h *hall) Save(uint64) error { return nil }

// drawer keeps dead letters in memory.
type drawer struct {
	mu  sync.Mutex
	all []sinks.Letter
}

func (d *drawer) Add(letters ...sinks.Letter) error {
	for _, l := range letters {
		_ = d.Drop(l.Event.Sequence)
		d.mu.Lock()
		d.all = append(d.all, l)
		d.mu.Unlock()
	}
	return nil
}

func (d *drawer) Each(from uint64, fn func(sinks.Letter) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.all {
		if l.Event.Sequence >= from {
			if err := fn(l); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *drawer) Drop(sequence uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = slices.DeleteFunc(d.all, func(l sinks.Letter) bool { return l.Event.Sequence == sequence })
	return nil
}

// open runs a worker with dead letters until the end of the bubble.
func (h *hall) open(t *testing.T, batch Batch, letters sinks.Letters) {
	t.Helper()
	s, err := New(Config{URL: "http://hooks.test", Batch: batch}, "lake", "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	p := &pipes{make(chan net.Conn), make(chan struct{})}
	s.client = &http.Client{Transport: &http.Transport{DialContext: p.dial}}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Hour}
	h.sink, h.feed = s, make(chan []listener.Event, 5000)
	worker := sinks.NewWorker(sinks.Options{
		Name: "lake", Sink: s, Source: h, Cursor: h, Log: slog.New(slog.DiscardHandler), GiveUp: time.Hour, Letters: letters,
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := worker.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	running.Go(func() {
		if err := server.Serve(p); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		_ = server.Shutdown(context.Background()) // waits for requests that are answered
		_ = s.Close()
		running.Wait()
	})
}

func numbered(sequence int) listener.Event {
	return listener.Event{
		Sequence: uint64(sequence), ID: fmt.Sprint(sequence), Kind: listener.KindProgress, Recorded: time.Now(),
		QueryID: fmt.Sprint("q", sequence%2), Payload: []byte(`{}`),
	}
}

// Events that come one by one gather for the time that is configured, and none waits for
// longer.
func TestATrickleGathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 2 * time.Second
		h := &hall{took: 50 * time.Millisecond}
		h.open(t, Batch{MaxEvents: 100, MaxWait: wait}, &drawer{})
		fed := make([]time.Time, 101)
		for n := 1; n <= 100; n++ {
			fed[n] = time.Now()
			h.feed <- []listener.Event{numbered(n)}
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if sizes := h.sizes(); len(sizes) > 6 || sizes[0] != 1 { // in ten seconds
			t.Errorf("requests of %v", sizes)
		}
		for n := 1; n <= 100; n++ {
			if late := h.after(t, n, fed[n]); late > wait+h.took {
				t.Errorf("event %d is late by %s", n, late)
			}
		}
		at := time.Now()
		h.feed <- []listener.Event{numbered(101)}
		time.Sleep(h.took)
		synctest.Wait()
		if late := h.after(t, 101, at); late != 0 {
			t.Errorf("the first event after a pause waits for %s", late)
		}
	})
}

// A backlog does not wait between requests.
func TestABacklogDoesNotGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hall{}
		h.open(t, Batch{MaxEvents: 100, MaxWait: 30 * time.Second}, &drawer{})
		began := time.Now()
		var all []listener.Event
		for n := 1; n <= 5*largestBatch; n++ {
			all = append(all, numbered(n))
		}
		for some := range slices.Chunk(all, largestBatch) {
			h.feed <- some
		}
		synctest.Wait()
		if late := h.after(t, len(all), began); late != 0 || len(h.sizes()) > 30 {
			t.Errorf("the last of a backlog came after %s, in requests of %v", late, h.sizes())
		}
		large := numbered(len(all) + 1)
		large.Payload = make([]byte, largeBatch)
		time.Sleep(time.Minute)
		began = time.Now()
		h.feed <- []listener.Event{large}
		synctest.Wait()
		h.feed <- []listener.Event{numbered(len(all) + 2)}
		synctest.Wait()
		if late := h.after(t, len(all)+2, began); late != 0 {
			t.Errorf("what comes behind a large request waits for %s", late)
		}
	})
}

// While the worker searches for the event that fails, and tries it alone, nothing waits
// for more events.
func TestWhatIsTriedAgainDoesNotGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 30 * time.Second
		h := &hall{}
		began := time.Now()
		h.code = func(sequences []int) int {
			if slices.Contains(sequences, 7) && time.Since(began) < 10*time.Minute {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		}
		h.open(t, Batch{MaxEvents: 100, MaxWait: wait}, &drawer{})
		var all []listener.Event
		for n := 1; n <= 40; n++ {
			all = append(all, numbered(n))
		}
		h.feed <- all
		time.Sleep(wait)
		for n := 2; n <= 40; n += 2 { // what is not behind it in its query
			if late := h.after(t, n, began); late > 10*time.Second {
				t.Errorf("event %d comes after %s, though it only waits for the search", n, late)
			}
		}
		for n := 42; n < 3000; n += 2 { // others go on, and gather
			time.Sleep(time.Second)
			h.feed <- []listener.Event{numbered(n)}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		seven := h.after(t, 7, began)
		if behind := h.after(t, 9, began) - seven; behind > time.Second {
			t.Errorf("what waits for a trial comes %s behind it", behind)
		}
		if n := len(h.sink.again); n != 0 {
			t.Errorf("%d events are still remembered", n)
		}
	})
}

// An event that comes while another fails is tried alone, to see which is to blame. That
// does not keep those behind it.
func TestWhatIsTriedAloneDoesNotGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, began := &hall{}, time.Now()
		h.code = func(sequences []int) int {
			if slices.Contains(sequences, 1) {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		}
		h.open(t, Batch{MaxEvents: 100, MaxWait: 30 * time.Second}, &drawer{})
		h.feed <- []listener.Event{numbered(1)}
		time.Sleep(time.Minute)
		h.feed <- []listener.Event{numbered(2), numbered(4)}
		time.Sleep(5 * time.Minute)
		if behind := h.after(t, 4, began) - h.after(t, 2, began); behind != 0 {
			t.Errorf("what waits for a trial comes %s behind it", behind)
		}
	})
}

// Dead letters that are retried do not wait for more, one behind the other.
func TestARetryDoesNotGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, d := &hall{}, &drawer{}
		for n := 1; n <= 20; n++ {
			_ = d.Add(sinks.Letter{Event: numbered(n), Cause: sinks.CauseAlone, Time: time.Now(), Retry: true})
		}
		h.open(t, Batch{MaxEvents: 100, MaxWait: 30 * time.Second}, d)
		began := time.Now()
		h.feed <- []listener.Event{numbered(21)}
		synctest.Wait()
		if late := h.after(t, 21, began); late != 0 || len(d.all) != 0 {
			t.Errorf("%d letters are left, what comes behind them waits for %s", len(d.all), late)
		}
	})
}
