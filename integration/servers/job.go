package servers

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// JobOptions says which script to run against which session.
type JobOptions struct {
	Script string     // a file of package jobs, such as "streams.py", or a path
	User   string     // "tests" when empty
	ID     string     // session id, a UUID; Spark's client picks one when it is empty
	Args   []string   // after the connection string
	OnFact func(Fact) // called for each line in order, from one goroutine; may be nil
	Log    io.Writer  // gets what the script says on standard error; may be nil
}

// Job is a PySpark script that runs as a client of a Spark server, in a process of its own.
type Job struct {
	process
	facts *factLog
}

// started numbers the jobs of this process, for the names of their logs.
var started atomic.Int64

// RunJob starts a script in the Python of the server's Spark. The script has not said anything
// yet when RunJob returns: Await its facts.
func RunJob(ctx context.Context, spark *Spark, options JobOptions) (*Job, error) {
	script, err := spark.script(options.Script)
	if err != nil {
		return nil, fmt.Errorf("find script %s: %w", options.Script, err)
	}
	job := &Job{facts: newFactLog(options.OnFact)}
	job.command = command{
		name:   "job " + options.Script,
		path:   spark.Python(),
		args:   append([]string{script, spark.clientRemote(options.User, options.ID)}, options.Args...),
		env:    spark.environment(),
		dir:    spark.dir,
		output: fmt.Sprintf("job-%d.log", started.Add(1)),
		log:    options.Log,
		facts:  job.facts,
		stdin:  true,
		ready:  func(context.Context) error { return nil },
	}
	if err := job.start(ctx); err != nil {
		return nil, err
	}
	return job, nil
}

// Facts are all facts so far.
func (j *Job) Facts() []Fact {
	facts, _ := j.facts.from(0)
	return slices.Clone(facts)
}

// Await returns the first fact, of all since the start, that matches, as soon as it is there.
// It fails when the job has ended without one.
func (j *Job) Await(ctx context.Context, match func(Fact) bool) (Fact, error) {
	exited := j.Exited()
	for seen := 0; ; {
		facts, changed := j.facts.from(seen)
		for _, fact := range facts {
			if match(fact) {
				return fact, nil
			}
		}
		seen += len(facts)
		select {
		case <-changed:
		case <-ctx.Done():
			return Fact{}, fmt.Errorf("await fact of %s: %w%s", j.command.name, context.Cause(ctx), j.command.tail())
		case <-exited:
			exited = nil
			if facts, _ := j.facts.from(seen); len(facts) == 0 {
				return Fact{}, fmt.Errorf("await fact of %s: it ended (%s)%s", j.command.name, j.current().cmd.ProcessState, j.command.tail())
			}
		}
	}
}

// Send gives the script one line of input, a command.
func (j *Job) Send(line string) error {
	if _, err := io.WriteString(j.current().stdin, line+"\n"); err != nil {
		return fmt.Errorf("send %q to %s: %w", line, j.command.name, err)
	}
	return nil
}

// Wait waits for the end of the script; an exit status other than 0 is an error.
func (j *Job) Wait() error {
	life := j.current()
	<-life.done
	if life.err != nil {
		return fmt.Errorf("run %s: %w%s", j.command.name, life.err, j.command.tail())
	}
	return nil
}

// Stop ends the script's input, upon which it leaves its session and queries as they are and
// ends. It is killed if it does not.
func (j *Job) Stop() error {
	life := j.current()
	if !life.alive() {
		return nil
	}
	life.signal(syscall.SIGCONT)
	_ = life.stdin.Close()
	return j.awaitEnd(life)
}

// clientRemote is the connection string for PySpark, which sends a token over a connection
// without TLS only to a host that is called localhost.
func (s *Spark) clientRemote(user, id string) string {
	remote := "sc://127.0.0.1:" + strconv.Itoa(s.port) + "/;user_id="
	if user == "" {
		user = "tests"
	}
	remote += user
	if id != "" {
		remote += ";session_id=" + id
	}
	if s.token != "" {
		remote = strings.Replace(remote, "127.0.0.1", "localhost", 1) + ";token=" + s.token
	}
	return remote
}

// script is the path of a script; writeLayout put those of package jobs beside the server's logs.
func (s *Spark) script(name string) (string, error) {
	path := name
	if !strings.ContainsRune(name, filepath.Separator) {
		path = s.in(filepath.Join("jobs", name))
	}
	if _, err := os.Stat(path); err != nil {
		return "", err
	}
	return filepath.Abs(path)
}
