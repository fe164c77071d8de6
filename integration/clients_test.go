//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"sparkbridge/connect"
	"sparkbridge/integration/servers"
)

// client is another client of a session, which can do to its bus what PySpark can.
func client(t *testing.T, spark *servers.Spark, id string) *connect.Session {
	t.Helper()
	remote, err := connect.ParseRemote(spark.Session(user, id))
	requireNoError(t, err)
	if token := spark.Token(); token != "" {
		remote, err = remote.WithToken(token)
		requireNoError(t, err)
	}
	session, err := connect.NewClient(connect.ClientOptions{}).Session(remote)
	requireNoError(t, err)
	t.Cleanup(func() { requireNoError(t, session.Close()) })
	return session
}

// probe asks Spark whether a session exists.
func probe(t *testing.T, spark *servers.Spark, id string) error {
	t.Helper()
	return client(t, spark, id).Probe(within(t, patience))
}

// owner is a PySpark client with a listener of its own.
type owner struct {
	t   *testing.T
	job *servers.Job
}

// startOwner starts a client that registers its listener now or, with --later, when told to.
func startOwner(s *session, args ...string) *owner {
	s.t.Helper()
	job, err := servers.RunJob(s.t.Context(), s.spark, servers.JobOptions{Script: "hold_bus.py", User: user, ID: s.id, Args: args})
	requireNoError(s.t, err)
	stopAtEnd(s.t, job)
	o := &owner{s.t, job}
	o.await("session")
	return o
}

// await waits for a fact.
func (o *owner) await(fact string) {
	o.t.Helper()
	_, err := o.job.Await(within(o.t, patience), func(f servers.Fact) bool { return f.Fact == fact })
	requireNoError(o.t, err)
}

// do sends a command and waits for what it answers.
func (o *owner) do(command, fact string) {
	o.t.Helper()
	requireNoError(o.t, o.job.Send(command))
	o.await(fact)
}

// heard is what the listener was told of a run, as ids of the contract.
func (o *owner) heard(run servers.Fact) (ids []string) {
	o.t.Helper()
	for _, f := range o.job.Facts() {
		if f.RunID != run.RunID || f.Fact == "started" {
			continue
		}
		var event struct {
			BatchID   int64
			Timestamp string
		}
		requireNoError(o.t, json.Unmarshal(f.Line, &event))
		switch f.Fact {
		case "progress":
			ids = append(ids, fmt.Sprintf("%s:progress:%d", f.RunID, event.BatchID))
		case "idle":
			ids = append(ids, fmt.Sprintf("%s:idle:%d", f.RunID, instant(o.t, event.Timestamp).UnixMilli()))
		default:
			ids = append(ids, f.RunID+":"+f.Fact)
		}
	}
	return ids
}

// checkHeard requires that the listener was told all of a run that has ended, which began
// after it was registered.
func (o *owner) checkHeard(s *session, run servers.Fact) {
	o.t.Helper()
	var want []string
	for _, e := range s.expect(s.inLog()) {
		if e.run.RunID == run.RunID && e.kind != "started" {
			want = append(want, e.id)
		}
	}
	again(o.t, "the end at the owner's listener", func() bool { return slices.Contains(o.heard(run), run.RunID+":terminated") })
	got := o.heard(run)
	if at := difference(want, got); at >= 0 {
		o.t.Errorf("the owner's listener: events differ from place %d on:\ngot  %s\nwant %s", at, from(got, at), from(want, at))
	}
}
