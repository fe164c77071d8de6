//go:build integration

package integration

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"sparkbridge/integration/servers"
)

// token40 is what the Spark 4.0 server wants to see, so that the tests on it cover tokens.
const token40 = "a-token-for-tests"

// world is the servers that tests share, each started by the first test that needs it.
type world struct {
	root    string // folder of everything
	program string // the bridge

	spark42, spark40 lazy[*servers.Spark]
	kafka            lazy[*servers.Kafka]
	nats             lazy[*servers.NATS]
}

func newWorld(root string) *world {
	w := &world{root: root, program: filepath.Join(root, "bridge")}
	spark := func(version, token string) func(context.Context) (*servers.Spark, error) {
		return func(ctx context.Context) (*servers.Spark, error) {
			return servers.StartSpark(ctx, servers.SparkOptions{
				Version: version, Token: token, Dir: filepath.Join(root, "spark-"+version),
				Conf: map[string]string{"spark.connect.execute.reattachable.senderMaxStreamDuration": "5s"},
			})
		}
	}
	w.spark42.start, w.spark40.start = spark("4.2", ""), spark("4.0", token40)
	w.kafka.start = func(ctx context.Context) (*servers.Kafka, error) {
		return servers.StartKafka(ctx, servers.KafkaOptions{Dir: filepath.Join(root, "kafka")})
	}
	w.nats.start = func(ctx context.Context) (*servers.NATS, error) {
		return servers.StartNATS(ctx, servers.NATSOptions{Dir: filepath.Join(root, "nats")})
	}
	return w
}

// all starts the three servers that most tests need, beside each other.
func (w *world) all(t *testing.T) (*servers.Spark, *servers.Kafka, *servers.NATS) {
	t.Helper()
	var starting sync.WaitGroup
	starting.Go(func() { w.kafka.begin(t.Context()) })
	starting.Go(func() { w.nats.begin(t.Context()) })
	w.spark42.begin(t.Context())
	starting.Wait()
	return w.spark42.get(t), w.kafka.get(t), w.nats.get(t)
}

func (w *world) close() error {
	return errors.Join(w.spark42.stop(), w.spark40.stop(), w.kafka.stop(), w.nats.stop())
}

// startSpark starts a server for one test, whose settings no other test can live with.
func startSpark(t *testing.T, version string, conf map[string]string) *servers.Spark {
	t.Helper()
	spark, err := servers.StartSpark(t.Context(), servers.SparkOptions{Version: version, Dir: folder(t, "spark"), Conf: conf})
	requireNoError(t, err)
	stopAtEnd(t, spark)
	return spark
}

// lazy is a server that starts when it is first needed.
type lazy[S interface{ Stop() error }] struct {
	start   func(context.Context) (S, error)
	once    sync.Once
	server  S
	started bool
	err     error
}

func (l *lazy[S]) begin(ctx context.Context) {
	l.once.Do(func() {
		l.server, l.err = l.start(context.WithoutCancel(ctx))
		l.started = l.err == nil
	})
}

func (l *lazy[S]) get(t *testing.T) S {
	t.Helper()
	l.begin(t.Context())
	if l.err != nil {
		t.Fatal(l.err)
	}
	return l.server
}

func (l *lazy[S]) stop() error {
	if !l.started {
		return nil
	}
	return l.server.Stop()
}

// folder is a folder for one test below the world's root, which names the test where it
// shows, such as in the list of processes.
func folder(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(shared.root, strings.ReplaceAll(t.Name(), "/", "-"), name)
}

// within bounds what a test waits for, so that a hang shows as the step that hung.
func within(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), limit, errors.New("not within "+limit.String()))
	t.Cleanup(cancel)
	return ctx
}

// patience is far above what any step takes, since machines that run tests are often busy.
const patience = 3 * time.Minute

// session is a session of a Spark server, made by a job that starts queries in it.
type session struct {
	t     *testing.T
	spark *servers.Spark
	id    string
	job   *servers.Job
	runs  []servers.Fact // started so far
}

const user = "tests"

// openSession starts a job that makes a new session and starts no query.
func openSession(t *testing.T, spark *servers.Spark, args ...string) *session {
	t.Helper()
	s := &session{t: t, spark: spark, id: uuid.NewString()}
	s.join(args...)
	return s
}

// join runs the job: it makes the session if it is not there.
func (s *session) join(args ...string) {
	s.t.Helper()
	args = append([]string{"--queries", "", "--dir", folder(s.t, "streams")}, args...)
	job, err := servers.RunJob(s.t.Context(), s.spark, servers.JobOptions{Script: "streams.py", User: user, ID: s.id, Args: args})
	requireNoError(s.t, err)
	s.t.Cleanup(func() {
		if err := job.Stop(); err != nil {
			s.t.Error(err)
		}
	})
	s.job = job
	s.fact("ready", "")
}

// start starts a query of a kind, or KIND=NAME, and returns how Spark named its run.
func (s *session) start(spec string) servers.Fact {
	s.t.Helper()
	kind, _, _ := strings.Cut(spec, "=")
	earlier := len(s.runs)
	requireNoError(s.t, s.job.Send("start "+spec))
	run, err := s.job.Await(within(s.t, patience), func(f servers.Fact) bool {
		return f.Fact == "error" || f.Fact == "started" && f.Query == kind && !s.knows(f.RunID)
	})
	requireNoError(s.t, err)
	if run.Fact == "error" {
		s.t.Fatalf("start %s (after %d others): %s", spec, earlier, run.Message)
	}
	s.runs = append(s.runs, run)
	return run
}

func (s *session) knows(runID string) bool {
	for _, run := range s.runs {
		if run.RunID == runID {
			return true
		}
	}
	return false
}

// stop stops queries, by kind.
func (s *session) stop(kinds ...string) {
	s.t.Helper()
	for _, kind := range kinds {
		requireNoError(s.t, s.job.Send("stop "+kind))
		s.fact("stopped", kind)
	}
}

// fact waits for a fact of the job.
func (s *session) fact(kind, query string) servers.Fact {
	s.t.Helper()
	found, err := s.job.Await(within(s.t, patience), func(f servers.Fact) bool {
		return f.Fact == kind && (query == "" || f.Query == query)
	})
	requireNoError(s.t, err)
	return found
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
