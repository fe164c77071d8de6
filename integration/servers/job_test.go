package servers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// shellJob stands a shell in for Python: what it prints are facts, what it reads are commands.
func shellJob(t *testing.T, script string, onFact func(Fact)) *Job {
	t.Helper()
	job := &Job{process: process{command: shell(t, script).command}, facts: newFactLog(onFact)}
	job.command.facts, job.command.stdin = job.facts, true
	requireNoError(t, job.start(t.Context()))
	stopped(t, job)
	return job
}

func TestJobFactsAndCommands(t *testing.T) {
	seen := make(chan Fact, 10)
	job := shellJob(t, `printf '{"fact":"started","query":"a",'; echo '"id":"1"}'; echo no JSON; while read -r line; do echo "{\"fact\":\"$line\"}"; done`,
		func(f Fact) { seen <- f })
	started, err := job.Await(within(t, 10*time.Second), is("started", "a"))
	requireNoError(t, err)
	if started.ID != "1" || string(started.Line) != `{"fact":"started","query":"a","id":"1"}` {
		t.Errorf("the first fact is %+v", started)
	}
	requireNoError(t, job.Send("again"))
	if _, err := job.Await(within(t, 10*time.Second), is("again", "")); err != nil {
		t.Error(err)
	}
	requireNoError(t, job.Stop())
	requireNoError(t, job.Wait())
	if facts := job.Facts(); len(facts) != 3 || facts[1].Message != "no JSON" || len(seen) != 3 {
		t.Errorf("facts are %+v", facts)
	}
}

func TestAwaitFailsWhenTheJobEnds(t *testing.T) {
	job := shellJob(t, `echo '{"fact":"session"}'; echo bad plan >&2; exit 4`, nil)
	_, err := job.Await(within(t, 10*time.Second), is("ready", ""))
	if err == nil || !strings.Contains(err.Error(), "exit status 4") || !strings.Contains(err.Error(), "bad plan") {
		t.Errorf("Await answered %v", err)
	}
	if _, err := job.Await(t.Context(), is("session", "")); err != nil {
		t.Errorf("what an ended job has said is lost: %v", err)
	}
	if err := job.Wait(); err == nil {
		t.Error("a failed job counts as good")
	}
}

func TestAwaitEndsWithItsContext(t *testing.T) {
	job := shellJob(t, "read -r line", nil)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if _, err := job.Await(ctx, is("ready", "")); !errors.Is(err, cause) {
		t.Errorf("Await answered %v", err)
	}
}

func is(fact, query string) func(Fact) bool {
	return func(f Fact) bool { return f.Fact == fact && (query == "" || f.Query == query) }
}
