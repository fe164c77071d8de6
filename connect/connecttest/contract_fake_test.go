package connecttest_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

const queryName = "orders"

// played is the server of this package, in memory.
type played struct {
	server  *connecttest.Server
	options connecttest.Options
}

func (p played) version() connecttest.Version { return p.options.Version }

func (p played) client(t *testing.T, token string) *client {
	return newClient(t, p.server.Dial(t, grpc.WithPerRPCCredentials(bearer(token))))
}

// produce makes an event of a real one's size ten times a second.
func (p played) produce(t *testing.T, c *client) {
	job, err := p.server.CreateSession(c.user, c.session)
	if err != nil {
		t.Fatal(err)
	}
	run := connecttest.Query{ID: uuid.NewString(), RunID: uuid.NewString(), Name: queryName}
	job.SetQueries(run)
	var working sync.WaitGroup
	working.Go(func() {
		for batch := 0; t.Context().Err() == nil; batch++ {
			job.Progress(fmt.Sprintf(`{"id":%q,"runId":%q,"batchId":%d,"sources":[{"description":%q}]}`, run.ID, run.RunID, batch, strings.Repeat("x", 900)))
			select {
			case <-time.After(100 * time.Millisecond):
			case <-t.Context().Done():
			}
		}
	})
	t.Cleanup(working.Wait)
}

func (p played) fail(t *testing.T, c *client) *sparkpb.StreamingQueryInstanceId {
	run := c.start(rate("failing", "")).GetQueryId()
	job, err := p.server.CreateSession(c.user, c.session)
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(10*time.Second, func() {
		job.Change(run.GetRunId(), func(q *connecttest.Query) { q.Stopped, q.Exception = true, "[USER_RAISED_EXCEPTION] no more" })
	})
	return run
}

func (p played) restart(t *testing.T) {
	if err := p.server.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := p.server.Restart(); err != nil {
		t.Fatal(err)
	}
}

func TestContract(t *testing.T) {
	for _, version := range []connecttest.Version{connecttest.Spark42, connecttest.Spark40} {
		options := fakeOptions()
		options.Version = version
		for _, line := range contract {
			t.Run(string(version)+"/"+line.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { line.test(t, played{connecttest.Start(t, options), options}) })
			})
		}
		t.Run(string(version)+"/driver restarts", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { driverRestarts(t, played{connecttest.Start(t, options), options}) })
		})
	}
}
