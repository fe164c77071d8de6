package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"sparkbridge/connect/connecttest"
	"sparkbridge/listener"
)

// world is a server in memory with one session of a job, and this client.
type world struct {
	t      *testing.T
	server *connecttest.Server
	job    *connecttest.Session
	client *Client
	s      *Session
	store  *recordingStore
	log    *lines
}

// inWorld runs a test in time that passes at once.
func inWorld(t *testing.T, o connecttest.Options, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, server: connecttest.Start(t, o), store: &recordingStore{}, log: &lines{}}
		w.makeSession()
		w.client = NewClient(ClientOptions{
			Log:  slog.New(slog.NewTextHandler(w.log, nil)),
			Dial: []grpc.DialOption{grpc.WithContextDialer(w.server.Dialer)},
		})
		w.s = w.session()
		test(t, w)
	})
}

// makeSession is the job's first contact.
func (w *world) makeSession() {
	w.t.Helper()
	job, err := w.server.CreateSession("etl", testSession)
	if err != nil {
		w.t.Fatal(err)
	}
	w.job = job
}

// session is the session as another process would open it.
func (w *world) session() *Session {
	w.t.Helper()
	r, err := ParseRemote("sc://127.0.0.1:15002/;user_id=etl;session_id=" + testSession)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.sessionOf(r)
}

func (w *world) sessionOf(r Remote) *Session {
	w.t.Helper()
	s, err := w.client.Session(r)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := s.Close(); err != nil {
			w.t.Errorf("close session: %v", err)
		}
	})
	return s
}

func (w *world) open() *Bus {
	w.t.Helper()
	b, err := w.s.OpenBus(w.t.Context(), BusOptions{Store: w.store})
	if err != nil {
		w.t.Fatalf("open bus: %v", err)
	}
	w.closeLater(b)
	return b
}

func (w *world) closeLater(b *Bus) {
	w.t.Cleanup(func() {
		if err := b.Close(); err != nil {
			w.t.Errorf("close bus: %v", err)
		}
	})
}

// crash is kill -9: the bus is gone, without a word to the store or the server.
func (w *world) crash(b *Bus) {
	b.cancel()
	<-b.reader.done
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	b.forgets.close(gone)
	b.over = errClosed
	w.s = w.session()
}

func (w *world) emit(from, to int) {
	for i := from; i < to; i++ {
		w.job.Progress(fmt.Sprintf(`{"batchId":%d}`, i))
	}
}

// expect reads events from..to in this order, and says Done where done is set.
func (w *world) expect(b *Bus, from, to int, done bool) {
	w.t.Helper()
	for from < to {
		d, err := b.Next(w.t.Context())
		if err != nil {
			w.t.Fatalf("waiting for event %d: %v", from, err)
		}
		for _, e := range d.Events {
			if want := fmt.Sprintf(`{"progress":{"batchId":%d}}`, from); string(e.JSON) != want || e.Type != listener.TypeProgress {
				w.t.Fatalf("got event %s of type %d, want %s", e.JSON, e.Type, want)
			}
			from++
		}
		if !done {
			continue
		}
		if err := b.Done(w.t.Context(), d); err != nil {
			w.t.Fatal(err)
		}
	}
	if from > to {
		w.t.Fatalf("got %d events more than %d", from-to, to)
	}
}

// expectEnd reads, with Done, until the stream is over for the wanted reason.
func (w *world) expectEnd(b *Bus, want error) {
	w.t.Helper()
	for {
		d, err := b.Next(w.t.Context())
		if err != nil {
			if !errors.Is(err, want) {
				w.t.Fatalf("the stream ended with %v, want %v", err, want)
			}
			return
		}
		if err := b.Done(w.t.Context(), d); err != nil {
			w.t.Fatal(err)
		}
	}
}

// quiet fails when an event comes within d; positions may.
func (w *world) quiet(b *Bus, d time.Duration) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	for {
		got, err := b.Next(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if err != nil || len(got.Events) > 0 {
			w.t.Fatalf("got %v, %v, want silence", got.Events, err)
		}
		if err := b.Done(w.t.Context(), got); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) finish(b *Bus) {
	w.t.Helper()
	if err := b.Finish(w.t.Context()); err != nil {
		w.t.Fatalf("finish: %v", err)
	}
	w.expectEnd(b, io.EOF)
}

// stop kills the server.
func (w *world) stop() {
	w.t.Helper()
	if err := w.server.Stop(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) restart() {
	w.t.Helper()
	if err := w.server.Restart(); err != nil {
		w.t.Fatal(err)
	}
}

// recordingStore is a store that remembers all that was saved, and fails on demand.
type recordingStore struct {
	MemoryStore
	mu   sync.Mutex
	all  []ResumePoint
	fail error
	hook func(ResumePoint)
}

func (s *recordingStore) Save(p ResumePoint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook != nil {
		s.hook(p)
	}
	if s.fail != nil {
		return s.fail
	}
	s.all = append(s.all, p)
	return s.MemoryStore.Save(p)
}

func (s *recordingStore) failing(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = err
}

func (s *recordingStore) now() ResumePoint {
	p, _, _ := s.Load() // memory does not fail
	return p
}

// lines is what was logged.
type lines struct {
	mu   sync.Mutex
	text []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, string(p))
	return len(p), nil
}

func (l *lines) count(part string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.text {
		if strings.Contains(line, part) {
			n++
		}
	}
	return n
}
