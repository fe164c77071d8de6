//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"gopkg.in/yaml.v3"

	"sparkbridge/connect"
)

// preflight is the part of the report of check --connect that tests look at.
type preflight struct {
	Works          bool
	Sources, Sinks []struct {
		Name, SparkVersion string
		Findings           []struct{ State, About, Text string }
		Queries            []struct {
			ID, RunID, Name              string
			Progress                     int
			IntervalSeconds, AwaySeconds float64
		}
	}
}

// finding is the text of a finding of the source, with its state.
func (p preflight) finding(about string) string {
	for _, f := range p.Sources[0].Findings {
		if f.About == about {
			return f.State + ": " + f.Text
		}
	}
	return "none"
}

// checkConnect runs the program's check on a configuration.
func checkConnect(t *testing.T, config settings, code int) (report preflight) {
	t.Helper()
	text, err := yaml.Marshal(map[string]any(config))
	requireNoError(t, err)
	file := filepath.Join(t.TempDir(), "bridge.yaml")
	requireNoError(t, os.WriteFile(file, text, 0o600))
	check := exec.CommandContext(within(t, patience), shared.program, "check", "--connect", "-o", "json", "--timeout", "60s", "-c", file)
	var out, errs bytes.Buffer
	check.Stdout, check.Stderr = &out, &errs
	if err := check.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	t.Logf("%s%s", &out, &errs)
	if got := check.ProcessState.ExitCode(); got != code {
		t.Fatalf("check exits %d, want %d", got, code)
	}
	requireNoError(t, json.Unmarshal(out.Bytes(), &report))
	return report
}

// The check sees what is there, and leaves no trace: no session, no listener, no event.
func TestCheckConnect(t *testing.T) {
	const source = "check"
	spark, kafka, nats := shared.all(t)
	session := &session{t: t, spark: spark, id: uuid.NewString()}
	wire := tapWire(t, spark.Remote())
	sinks := three(t, kafka, nats, source)
	config := configure(t, source, wire.remote(session.id), sinks...)

	report := checkConnect(t, config, 0)
	if said := report.finding("session"); !strings.HasPrefix(said, "ok: is not there yet") {
		t.Errorf("of a session that is not there it says %q", said)
	}
	if err := probe(t, spark, session.id); !errors.Is(err, connect.ErrSessionNotFound) {
		t.Errorf("asked for the session after the check, Spark says %v", err)
	}

	session.join("--trigger", "200 milliseconds")
	run := session.start("healthy")
	again(t, "batches", func() bool { return session.countInLog("progress", run) >= 5 })
	report = checkConnect(t, config, 0)
	seen := report.Sources[0]
	if !strings.HasPrefix(seen.SparkVersion, "4.2.") || len(seen.Queries) != 1 || !strings.HasPrefix(report.finding("bus"), "ok: the server has one") {
		t.Fatalf("of the session it says %+v", seen)
	}
	query := seen.Queries[0]
	if query.ID != run.ID || query.RunID != run.RunID || query.Progress < 5 || query.IntervalSeconds < 0.1 || query.AwaySeconds < 99*0.1 {
		t.Errorf("of the query it says %+v", query)
	}

	session.stop("healthy")
	if adds, removes := wire.busCommands(t); len(adds)+removes > 0 {
		t.Errorf("it sent %d ADD and %d REMOVE", len(adds), removes)
	}
	for _, s := range sinks {
		if arrivals, _ := s.all(); len(arrivals) > 0 {
			t.Errorf("%d events came to %s", len(arrivals), s.name)
		}
	}

	config["sinks"] = []any{map[string]any{"name": "lake", "kafka": map[string]any{"brokers": kafka.Brokers(), "topic": "not-there"}}}
	report = checkConnect(t, config, 1)
	if f := report.Sinks[0].Findings; report.Works || len(f) != 2 || f[1].State != "problem" || !strings.Contains(f[1].Text, "--create --topic not-there") {
		t.Errorf("of a topic that is not there it says %+v", f)
	}
}
