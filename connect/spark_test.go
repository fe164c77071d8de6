//go:build integration

package connect

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"sparkbridge/integration/servers"
	"sparkbridge/listener"
)

// real is a real Spark Connect server, with streams that end every five seconds.
type real struct {
	*servers.Spark
	client *Client
}

func startReal(t *testing.T, version, token string) *real {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	spark, err := servers.StartSpark(ctx, servers.SparkOptions{Version: version, Dir: t.TempDir(), Token: token, Conf: map[string]string{
		"spark.connect.execute.reattachable.senderMaxStreamDuration": "5s",
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := spark.Stop(); err != nil {
			t.Errorf("stop Spark: %v", err)
		}
	})
	return &real{spark, NewClient(ClientOptions{Log: slog.New(slog.NewTextHandler(t.Output(), nil))})}
}

func (r *real) session(t *testing.T, id, token string) *Session {
	t.Helper()
	remote, err := ParseRemote(r.Session("tests", id))
	if err == nil {
		remote, err = remote.WithToken(token)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.client.Session(remote)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (r *real) job(t *testing.T, script, id, until string, args ...string) *servers.Job {
	t.Helper()
	job, err := servers.RunJob(t.Context(), r.Spark, servers.JobOptions{Script: script, ID: id, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = job.Stop() })
	await(t, job, until)
	return job
}

func await(t *testing.T, job *servers.Job, fact string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := job.Await(ctx, func(f servers.Fact) bool { return f.Fact == fact }); err != nil {
		t.Fatal(err)
	}
}

func openReal(t *testing.T, s *Session, o BusOptions) *Bus {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	b, err := s.OpenBus(ctx, o)
	if err != nil {
		t.Fatalf("open bus: %v", err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// batches follows the batch ids of one run, which grow by one.
type batches struct {
	next map[string]int64
	n    int
}

func (c *batches) take(t *testing.T, d listener.Delivery) {
	t.Helper()
	for _, e := range d.Events {
		if e.Type != listener.TypeProgress {
			continue
		}
		var p struct {
			Progress struct {
				RunID   string `json:"runId"`
				BatchID int64  `json:"batchId"`
			} `json:"progress"`
		}
		if err := json.Unmarshal(e.JSON, &p); err != nil {
			t.Fatalf("event %s: %v", e.JSON, err)
		}
		run := p.Progress.RunID
		if want, seen := c.next[run]; seen && p.Progress.BatchID != want {
			t.Errorf("batch %d of run %s, want %d", p.Progress.BatchID, run, want)
		}
		c.next[run] = p.Progress.BatchID + 1
		c.n++
	}
}

func (c *batches) read(t *testing.T, b *Bus, events int, done bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for end := c.n + events; c.n < end; {
		d, err := b.Next(ctx)
		if err != nil {
			t.Fatalf("after %d events: %v", c.n, err)
		}
		c.take(t, d)
		if !done {
			continue
		}
		if err := b.Done(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
}

// endReal follows a bus to its end, which may be one of several.
func endReal(t *testing.T, b *Bus, c *batches, want ...error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	for {
		d, err := b.Next(ctx)
		if slices.ContainsFunc(want, func(end error) bool { return errors.Is(err, end) }) {
			return
		}
		if err != nil {
			t.Fatalf("the stream ended with %v, want %v", err, want)
		}
		c.take(t, d)
		if err := b.Done(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRealSpark(t *testing.T) {
	for _, version := range []string{"4.2", "4.0"} {
		t.Run(version, func(t *testing.T) {
			r := startReal(t, version, "")
			t.Run("probe", r.probe)
			t.Run("events over clean ends and kills", r.events)
			t.Run("taken bus", r.taken)
			t.Run("removed by another", r.removed)
			t.Run("closed by its job", r.closed)
			t.Run("restart", r.restart)
		})
	}
}

func (r *real) probe(t *testing.T) {
	s := r.session(t, uuid.NewString(), "")
	if err := s.Probe(t.Context()); !errors.Is(err, ErrSessionNotFound) {
		t.Errorf("missing session: %v", err)
	}
	if _, err := s.OpenBus(t.Context(), BusOptions{}); !errors.Is(err, ErrSessionNotFound) {
		t.Errorf("bus of a missing session: %v", err)
	}
	if _, err := s.Active(t.Context()); !errors.Is(err, ErrSessionNotFound) {
		t.Errorf("queries of a missing session: %v", err)
	}
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Probe(t.Context()); err != nil || s.ServerSideID() == "" {
		t.Errorf("session of ours: %v, server-side id %q", err, s.ServerSideID())
	}
	if queries, err := s.Active(t.Context()); err != nil || len(queries) != 0 {
		t.Errorf("Active = %v, %v", queries, err)
	}
}

func (r *real) events(t *testing.T) {
	id := uuid.NewString()
	s := r.session(t, id, "")
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	store := new(MemoryStore)
	b := openReal(t, s, BusOptions{Store: store})
	job := r.job(t, "streams.py", id, "ready", "--dir", t.TempDir(), "--queries", "healthy,unnamed")
	queries, err := s.Active(t.Context())
	if err != nil || len(queries) != 2 {
		t.Errorf("Active = %v, %v", queries, err)
	}
	seen := &batches{next: map[string]int64{}}
	for _, q := range queries {
		seen.next[q.RunID] = 0 // the bus was open before the queries were started
	}
	seen.read(t, b, 40, true)
	for range 2 {
		// Dies without a word, with events that were read and not kept.
		lost := &batches{next: map[string]int64{}}
		lost.read(t, b, 6, false)
		b.cancel()
		<-b.reader.done
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		if err := sleep(t.Context(), 7*time.Second); err != nil {
			t.Fatal(err)
		}
		b = openReal(t, r.session(t, id, ""), BusOptions{Store: store})
		if !b.Resumed() {
			t.Fatal("the bus was not resumed")
		}
		seen.read(t, b, 20, true)
	}
	if err := job.Send("stop_all"); err != nil {
		t.Fatal(err)
	}
	await(t, job, "stopped")
	if err := b.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	endReal(t, b, seen, io.EOF)
	again := openReal(t, s, BusOptions{AddTimeout: 20 * time.Second})
	if err := again.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	endReal(t, again, seen, io.EOF)
}

func (r *real) taken(t *testing.T) {
	id := uuid.NewString()
	holder := r.job(t, "hold_bus.py", id, "held")
	s := r.session(t, id, "")
	store := new(MemoryStore)
	began := time.Now()
	if _, err := s.OpenBus(t.Context(), BusOptions{AddTimeout: 8 * time.Second, Store: store}); !errors.Is(err, ErrBusTaken) {
		t.Fatalf("OpenBus: %v", err)
	}
	if waited := time.Since(began); waited < 8*time.Second {
		t.Errorf("decided after %v", waited)
	}
	if err := holder.Send("release"); err != nil {
		t.Fatal(err)
	}
	await(t, holder, "released")
	b := openReal(t, s, BusOptions{Store: store})
	if err := b.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	endReal(t, b, &batches{}, io.EOF)
	if err := holder.Send("hold"); err != nil { // nothing of ours is left in its way
		t.Fatal(err)
	}
}

func (r *real) removed(t *testing.T) {
	id := uuid.NewString()
	s := r.session(t, id, "")
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := openReal(t, s, BusOptions{})
	if err := r.session(t, id, "").removeListener(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	endReal(t, b, &batches{next: map[string]int64{}}, ErrBusRemoved)
	openReal(t, s, BusOptions{AddTimeout: 20 * time.Second})
}

func (r *real) closed(t *testing.T) {
	id := uuid.NewString()
	job := r.job(t, "streams.py", id, "ready", "--dir", t.TempDir(), "--queries", "")
	s := r.session(t, id, "")
	b := openReal(t, s, BusOptions{})
	if err := job.Send("close"); err != nil {
		t.Fatal(err)
	}
	endReal(t, b, &batches{}, ErrBusRemoved, ErrSessionClosed) // which of them Spark's threads decide
	if err := s.Probe(t.Context()); !errors.Is(err, ErrSessionClosed) {
		t.Errorf("Probe: %v", err)
	}
}

func (r *real) restart(t *testing.T) {
	id := uuid.NewString()
	s := r.session(t, id, "")
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	store := new(MemoryStore)
	b := openReal(t, s, BusOptions{Store: store})
	r.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if err := r.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	endReal(t, b, &batches{}, ErrSessionNotFound)
	if _, err := s.OpenBus(ctx, BusOptions{Store: store}); !errors.Is(err, ErrSessionNotFound) {
		t.Errorf("bus before the job is back: %v", err)
	}
	if err := r.session(t, id, "").Create(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Active(ctx); !errors.Is(err, ErrSessionChanged) {
		t.Errorf("Active in a new driver: %v", err)
	}
	if again := openReal(t, s, BusOptions{Store: store}); again.Resumed() {
		t.Error("a new driver cannot have the old operation")
	}
	if _, err := s.Active(ctx); err != nil {
		t.Errorf("Active on the new bus: %v", err)
	}
}

func TestRealToken(t *testing.T) {
	r := startReal(t, "4.2", "secret")
	for token, want := range map[string]error{"secret": nil, "": ErrUnauthenticated, "wrong": ErrUnauthenticated} {
		s := r.session(t, uuid.NewString(), token)
		if err := s.Create(t.Context()); !errors.Is(err, want) {
			t.Errorf("token %q: %v, want %v", token, err, want)
		}
	}
}
