//go:build integration

package servers

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

func startSpark(t *testing.T, options SparkOptions) *Spark {
	t.Helper()
	options.Dir = t.TempDir()
	spark, err := StartSpark(within(t, 4*time.Minute), options)
	requireNoError(t, err)
	stopped(t, spark)
	return spark
}

// runStreams starts queries and waits until the script has started them all.
func runStreams(t *testing.T, spark *Spark, session string, args ...string) *Job {
	t.Helper()
	job, err := RunJob(t.Context(), spark, JobOptions{Script: "streams.py", ID: session, Args: append([]string{"--dir", spark.Dir() + "/streams"}, args...)})
	requireNoError(t, err)
	stopped(t, job)
	if _, err := job.Await(within(t, 3*time.Minute), is("ready", "")); err != nil {
		t.Fatal(err)
	}
	return job
}

func fact(t *testing.T, job *Job, kind, query string) Fact {
	t.Helper()
	found, err := job.Await(within(t, time.Minute), is(kind, query))
	requireNoError(t, err)
	return found
}

// awaitLogged waits until the event log has what is looked for.
func awaitLogged(ctx context.Context, t *testing.T, spark *Spark, found func([]LoggedEvent) bool) []LoggedEvent {
	t.Helper()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		events, err := spark.EventLogEvents()
		requireNoError(t, err)
		if found(events) {
			return events
		}
		select {
		case <-ctx.Done():
			t.Fatalf("await event in log: %v; it has %s", context.Cause(ctx), summary(events))
		case <-again.C:
		}
	}
}

func count(events []LoggedEvent, kind, runID string) (n int) {
	for _, event := range events {
		if event.Kind == kind && event.RunID == runID {
			n++
		}
	}
	return n
}

func summary(events []LoggedEvent) string {
	var kinds []string
	for _, event := range events {
		kinds = append(kinds, event.Kind+" "+event.Name)
	}
	return strings.Join(kinds, ", ")
}

func TestSparkRunsJobs(t *testing.T) {
	for _, version := range []string{"4.2", "4.0"} {
		t.Run(version, func(t *testing.T) {
			spark := startSpark(t, SparkOptions{Version: version})
			session := uuid.NewString()
			job := runStreams(t, spark, session, "--queries", "healthy,stateful,failing,unnamed,odd", "--fail-after", "1")
			if joined := fact(t, job, "session", ""); joined.SessionID != session {
				t.Errorf("the job joined session %s, want %s", joined.SessionID, session)
			}
			healthy, failing, odd := fact(t, job, "started", "healthy"), fact(t, job, "started", "failing"), fact(t, job, "started", "odd")
			awaitLogged(within(t, time.Minute), t, spark, func(events []LoggedEvent) bool {
				return count(events, "progress", healthy.RunID) >= 3 && count(events, "terminated", failing.RunID) == 1 &&
					count(events, "progress", odd.RunID) > 0 && count(events, "progress", fact(t, job, "started", "stateful").RunID) > 0 &&
					count(events, "progress", fact(t, job, "started", "unnamed").RunID) > 0
			})
			requireNoError(t, job.Send("stop healthy"))
			fact(t, job, "stopped", "healthy")
			events := awaitLogged(within(t, time.Minute), t, spark, func(events []LoggedEvent) bool {
				return count(events, "terminated", healthy.RunID) == 1
			})
			requireConsecutive(t, events, healthy)
			if failed := slices.IndexFunc(events, func(e LoggedEvent) bool {
				return e.Kind == "terminated" && e.RunID == failing.RunID && strings.Contains(string(e.JSON), "is beyond the end")
			}); failed < 0 {
				t.Error("the failing query did not end with its own error")
			}
			pid := spark.Pid()
			requireNoError(t, job.Stop())
			requireNoError(t, job.Wait())
			requireNoError(t, spark.Stop())
			requireGone(t, pid, spark.Port())
		})
	}
}

// requireConsecutive checks the log against what is known of a run: batches from 0 without a gap, the start first.
func requireConsecutive(t *testing.T, events []LoggedEvent, run Fact) {
	t.Helper()
	var next int64
	for _, event := range events {
		if event.RunID != run.RunID {
			continue
		}
		if event.ID != run.ID {
			t.Errorf("%s event has query id %s, want %s", event.Kind, event.ID, run.ID)
		}
		if event.Kind == "started" && next != 0 {
			t.Errorf("started came after %d batches", next)
		}
		if event.Kind == "progress" {
			if event.BatchID != next || event.Name != run.Name || event.Timestamp == "" {
				t.Errorf("progress %d of %q at %q, want %d of %q", event.BatchID, event.Name, event.Timestamp, next, run.Name)
			}
			next++
		}
	}
}

func TestSparkSurvivesKillAndPause(t *testing.T) {
	spark := startSpark(t, SparkOptions{})
	job := runStreams(t, spark, uuid.NewString(), "--queries", "healthy,idle")
	before := fact(t, job, "started", "healthy")
	awaitLogged(within(t, time.Minute), t, spark, func(events []LoggedEvent) bool {
		return count(events, "progress", before.RunID) >= 2 && count(events, "idle", fact(t, job, "started", "idle").RunID) >= 1
	})
	requireNoError(t, job.Stop())
	spark.Pause()
	requireState(t, spark.Pid(), "T")
	spark.Resume()
	pid := spark.Pid()
	spark.Kill()
	requireGone(t, pid, spark.Port())

	requireNoError(t, spark.Restart(within(t, 4*time.Minute)))
	after := fact(t, runStreams(t, spark, uuid.NewString(), "--queries", "healthy"), "started", "healthy")
	if after.ID != before.ID || after.RunID == before.RunID {
		t.Errorf("restarted from its checkpoint as %s run %s, before %s run %s", after.ID, after.RunID, before.ID, before.RunID)
	}
	awaitLogged(within(t, time.Minute), t, spark, func(events []LoggedEvent) bool {
		return count(events, "progress", before.RunID) >= 2 && count(events, "progress", after.RunID) >= 1
	})
}

func TestSparkAsksForToken(t *testing.T) {
	spark := startSpark(t, SparkOptions{Token: "secret-7"})
	job := runStreams(t, spark, "", "--queries", "healthy")
	fact(t, job, "started", "healthy")

	stranger, err := RunJob(t.Context(), &Spark{parts: spark.parts, dir: spark.dir, port: spark.port}, JobOptions{Script: "hold_bus.py"})
	requireNoError(t, err)
	stopped(t, stranger)
	if _, err := stranger.Await(within(t, time.Minute), is("session", "")); err == nil || !strings.Contains(err.Error(), "No authentication token provided") {
		t.Errorf("a client without a token got %v", err)
	}
}

func TestHoldBus(t *testing.T) {
	spark := startSpark(t, SparkOptions{})
	session := uuid.NewString()
	holder, err := RunJob(t.Context(), spark, JobOptions{Script: "hold_bus.py", ID: session})
	requireNoError(t, err)
	stopped(t, holder)
	fact(t, holder, "held", "")
	query := fact(t, runStreams(t, spark, session, "--queries", "healthy"), "started", "healthy")
	if _, err := holder.Await(within(t, time.Minute), func(f Fact) bool { return f.Fact == "progress" && f.RunID == query.RunID }); err != nil {
		t.Error(err)
	}
	requireNoError(t, holder.Send("release"))
	fact(t, holder, "released", "")
	requireNoError(t, holder.Stop())
	requireNoError(t, holder.Wait())
}

func TestStartSparkFailsEarly(t *testing.T) {
	began := time.Now()
	_, err := StartSpark(within(t, time.Minute), SparkOptions{Dir: t.TempDir(), Conf: map[string]string{"spark.connect.grpc.binding.port": "none"}})
	if err == nil || !strings.Contains(err.Error(), "The value 'none'") {
		t.Fatalf("error of a server with a wrong port: %v", err)
	}
	t.Logf("after %s", time.Since(began))
}
