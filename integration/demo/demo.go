package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"sparkbridge/integration/servers"
	"sparkbridge/internal/lines"
)

// errInterrupted says that the demo was told to stop before it had shown anything.
var errInterrupted = errors.New("interrupted")

// queries are what the job runs: kinds of integration/jobs/streams.py, with names.
var queries = []struct{ kind, name, remark string }{
	{"healthy", "orders", "always has something to do"},
	{"stateful", "visits", "has a watermark and state"},
	{"failing", "payments", "fails after ten seconds"},
}

// demo is all that runs. One goroutine, that of run, starts, shows and stops it; the sinks and
// the job hand over what they get by channels.
type demo struct {
	dir    string
	out    *screen
	board  *board
	parent int // of this process

	spark   *servers.Spark
	broker  *broker
	webhook *webhook
	job     *servers.Job
	bridge  *servers.Program

	arrivals chan arrival
	facts    chan servers.Fact
	over     chan struct{} // closed when nobody receives any more
}

func newDemo(dir string, out *screen) *demo {
	return &demo{
		dir: dir, out: out, board: newBoard(), parent: os.Getppid(),
		arrivals: make(chan arrival, 1024), facts: make(chan servers.Fact, 16), over: make(chan struct{}),
	}
}

// run starts everything, shows events for a time (0: until ctx ends), and stops everything.
// errInterrupted tells that ctx ended before there was something to show.
func (d *demo) run(ctx context.Context, length time.Duration) (err error) {
	defer func() { err = errors.Join(err, d.close()) }()
	d.out.say("%s\n", d.out.paint(lines.Bold, "sparkbridge: events of Spark's streaming queries, on NATS and a webhook"))
	err = d.start(ctx)
	if err == nil {
		err = d.introduce()
	}
	if err == nil {
		err = d.attach(ctx)
	}
	if ctx.Err() != nil {
		return errInterrupted
	}
	if err == nil {
		err = d.show(ctx, length)
	}
	if err == nil {
		err = d.finish()
	}
	if err == nil {
		err = d.conclude(length > 0)
	}
	return err
}

func (d *demo) start(ctx context.Context) error {
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"starting Spark Connect " + servers.DefaultSpark, d.startSpark},
		{"opening a session with PySpark", d.openSession},
		{"starting a NATS server and a webhook", d.openSinks},
		{"building the bridge", d.build},
		{"starting the bridge", d.startBridge},
	} {
		if err := d.out.step(step.what, func() error { return step.do(ctx) }); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) startSpark(ctx context.Context) (err error) {
	d.spark, err = servers.StartSpark(ctx, servers.SparkOptions{Dir: d.in("spark")})
	return err
}

// openSession runs the job, which makes a session of its own, without a query yet.
func (d *demo) openSession(ctx context.Context) (err error) {
	d.job, err = servers.RunJob(ctx, d.spark, servers.JobOptions{
		Script: "streams.py", User: source, ID: uuid.NewString(),
		Args:   []string{"--queries", "", "--dir", d.in("job"), "--trigger", "2 seconds", "--fail-after", "10"},
		OnFact: d.learn,
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("no session after two minutes"))
	defer cancel()
	_, err = d.job.Await(ctx, func(f servers.Fact) bool { return f.Fact == "ready" })
	return err
}

// learn takes a fact of the job, in the job's goroutine.
func (d *demo) learn(f servers.Fact) {
	select {
	case d.facts <- f:
	case <-d.over:
	}
}

func (d *demo) openSinks(ctx context.Context) (err error) {
	if d.broker, err = startBroker(ctx, d.dir, d.receive(natsSink)); err != nil {
		return err
	}
	d.webhook, err = startWebhook(d.receive(webhookSink))
	return err
}

// receive takes events in a sink's goroutines.
func (d *demo) receive(s sink) func(event) {
	return func(e event) {
		select {
		case d.arrivals <- arrival{s, e, time.Now()}:
		case <-d.over:
		}
	}
}

func (d *demo) build(ctx context.Context) error {
	said, err := exec.CommandContext(ctx, "go", "build", "-o", d.in("bridge"), "sparkbridge/cmd/bridge").CombinedOutput()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("build the bridge (run the demo inside the repository): %w\n%s", err, said)
	}
	return nil
}

func (d *demo) startBridge(ctx context.Context) error {
	session, err := d.job.Await(ctx, func(f servers.Fact) bool { return f.Fact == "session" })
	if err != nil {
		return err
	}
	err = writeConfiguration(d.in("bridge.yaml"), d.in("journal"), d.spark.Session(source, session.SessionID), d.broker.url(), d.webhook.url)
	if err != nil {
		return err
	}
	d.bridge, err = servers.RunProgram(ctx, servers.ProgramOptions{
		Path: d.in("bridge"), Args: []string{"run", "-c", d.in("bridge.yaml")}, Dir: d.dir,
	})
	return err
}

// introduce says what there is to look at while it runs.
func (d *demo) introduce() error {
	path := d.in("bridge.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("show configuration of the bridge: %w", err)
	}
	d.out.say("\nAll that the bridge was told, in %s:\n", path)
	for line := range strings.Lines(string(text)) {
		d.out.say("  %s", d.out.paint(lines.Dim, strings.TrimRight(line, "\n")))
	}
	d.out.say("\nTo try in another terminal while it runs:\n")
	for _, hint := range []struct{ what, command string }{
		{"subscribe to the ends of queries, with the nats command (nats-io/natscli)", "nats sub -s " + d.broker.url() + " 'spark." + source + ".*.terminated'"},
		{"crash the bridge: it is started again, and no event is lost", fmt.Sprintf("kill -9 %d", d.bridge.Pid())},
		{"read what the bridge says about itself", "tail -f " + d.in("bridge.log")},
	} {
		d.out.say("  %s\n  %s\n", d.out.paint(lines.Dim, "# "+hint.what), hint.command)
	}
	return nil
}

// in is a path in the demo's folder.
func (d *demo) in(path ...string) string {
	return filepath.Join(append([]string{d.dir}, path...)...)
}
