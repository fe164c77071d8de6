package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/connect/connecttest"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const sessionID = "5b0d2c1e-8f0a-4c53-9a58-7b1f0a4f3e11"

// world is a Spark server in memory, a journal on disk, and a bridge between them
// that can be started and stopped.
type world struct {
	t      *testing.T
	spark  *connecttest.Server
	dir    string
	source configs.Source
	log    *lines
	dial   func(context.Context, string) (net.Conn, error) // the way to spark

	stop func()
	done chan error
	face *face // of the bridge that was started last
}

func newWorld(t *testing.T, o connecttest.Options) *world {
	spark := connecttest.Start(t, o)
	return &world{
		t: t, spark: spark, dial: spark.Dialer, dir: t.TempDir(), log: &lines{},
		source: configs.Source{
			Name: "etl", Attach: configs.AttachFirstQuery, OnStop: configs.OnStopRemove, PollInterval: 5 * time.Second, Mode: configs.ModeAuto,
		},
	}
}

// start runs a bridge; it fails the test if the one before is not stopped.
func (w *world) start() {
	w.t.Helper()
	if w.source.Remote == "" {
		w.source.Remote = configs.ConnectionString(fmt.Sprintf("sc://%s/;user_id=u;session_id=%s", w.spark.Addr(), sessionID))
	}
	w.face = newFace("test")
	j, err := journal.Open(w.dir, journal.Options{Written: w.face.wrote})
	if err != nil {
		w.t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(w.log, nil))
	client := connect.NewClient(connect.ClientOptions{Log: log, Dial: []grpc.DialOption{grpc.WithContextDialer(w.dial)}})
	ctx, stop := context.WithCancel(w.t.Context())
	w.stop, w.done = stop, make(chan error, 1)
	go func() {
		err := carry(ctx, &configs.Config{Sources: []configs.Source{w.source}}, j, client, log, w.face)
		w.done <- errors.Join(err, j.Close())
	}()
}

// halt stops the bridge and waits for it.
func (w *world) halt() {
	w.t.Helper()
	w.stop()
	if err := w.wait(); err != nil {
		w.t.Errorf("bridge: %v", err)
	}
}

func (w *world) wait() error {
	w.t.Helper()
	select {
	case err := <-w.done:
		return err
	case <-time.After(time.Hour):
		w.t.Fatal("the bridge does not stop")
		return nil
	}
}

// job makes the session as its owner does, with queries that run in it.
func (w *world) job(queries ...connecttest.Query) *connecttest.Session {
	w.t.Helper()
	s, err := w.spark.CreateSession("u", sessionID)
	if err != nil {
		w.t.Fatal(err)
	}
	s.SetQueries(queries...)
	return s
}

// events reads the journal of a bridge that is stopped.
func (w *world) events() []listener.Event {
	w.t.Helper()
	j, err := journal.Open(w.dir, journal.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	defer j.Close()
	first, next := j.Bounds()
	r, err := j.NewReader(first)
	if err != nil {
		w.t.Fatal(err)
	}
	defer r.Close()
	var all []listener.Event
	for first+uint64(len(all)) < next {
		events, err := tape{r}.Next(w.t.Context(), 100, 1<<20)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, events...)
	}
	return all
}

// ids are the ids of the events of queries, states the states of the bus.
func (w *world) ids() (ids []string) {
	for _, e := range w.events() {
		if e.Kind != listener.KindBus {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

func (w *world) states() (states []string) {
	for _, e := range w.events() {
		if e.Kind != listener.KindBus {
			continue
		}
		var c change
		if err := json.Unmarshal(e.Payload, &c); err != nil {
			w.t.Fatal(err)
		}
		what, _, _ := strings.Cut(c.Reason, ":")
		if c.State != busWaiting {
			what = ""
		}
		states = append(states, strings.TrimSpace(string(c.State)+" "+what))
		if e.ID != listener.BusID("etl", e.Sequence) || c.UserID != "u" || c.SessionID != sessionID || c.Source != "etl" {
			w.t.Errorf("bus event %s: %s", e.ID, e.Payload)
		}
	}
	return states
}

func (w *world) want(what string, got []string, want ...string) {
	w.t.Helper()
	if !slices.Equal(got, want) {
		w.t.Errorf("%s\n got %s\nwant %s\nlog:\n%s", what, strings.Join(got, ", "), strings.Join(want, ", "), w.log)
	}
}

// lines collects a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) count(part string) int { return strings.Count(l.String(), part) }

func progress(run string, batch int) string {
	return fmt.Sprintf(`{"id":"q-%s","runId":"%s","name":"n-%s","timestamp":"2026-01-01T00:00:00.000Z","batchId":%d}`, run, run, run, batch)
}

func query(run string) connecttest.Query {
	return connecttest.Query{ID: "q-" + run, RunID: run, Name: "n-" + run}
}

// after lets time pass until nothing is left to do.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
