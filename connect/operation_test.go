package connect

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
)

func (w *world) writer() *StreamWriter {
	return w.s.ReadStream().Format("rate").Load().WriteStream().Format("noop").QueryName("orders")
}

// started checks that there is one query, which is the one that was told of.
func (w *world) started(q *StreamingQuery, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("start: %v", err)
	}
	queries := w.job.Queries()
	if len(queries) != 1 || queries[0].ID != q.ID() || queries[0].RunID != q.RunID() || q.Name() != "orders" {
		w.t.Fatalf("queries %+v, told of %s %s %q", queries, q.ID(), q.RunID(), q.Name())
	}
}

// performed are the requests that run an operation of ours, and the operation, which must be one.
func (w *world) performed() (requests []*sparkpb.ExecutePlanRequest, operation string) {
	w.t.Helper()
	for _, r := range connecttest.CallsOf[*sparkpb.ExecutePlanRequest](w.server) {
		if len(r.GetRequestOptions()) == 0 {
			continue
		}
		requests = append(requests, r)
		if operation != "" && r.GetOperationId() != operation {
			w.t.Errorf("operations %s and %s, want one", operation, r.GetOperationId())
		}
		operation = r.GetOperationId()
	}
	return requests, operation
}

// released says whether the server was told to forget an operation.
func (w *world) released(operation string) bool {
	for _, r := range connecttest.CallsOf[*sparkpb.ReleaseExecuteRequest](w.server) {
		if r.GetOperationId() == operation && r.GetReleaseAll() != nil {
			return true
		}
	}
	return false
}

// However the answer to a start is lost, the query is started once.
func TestALostStartStartsOnce(t *testing.T) {
	gone := status.Error(codes.Unavailable, "connection reset by peer")
	proxy := status.Error(codes.Internal, "stream terminated by RST_STREAM with error code: INTERNAL_ERROR")
	for name, fault := range map[string]connecttest.Fault{
		"request is lost":       {Err: gone},
		"proxy fails":           {Err: proxy},
		"request hangs":         {Hang: true},
		"answer is lost":        {Late: true, Err: gone},
		"answer hangs":          {Late: true, Hang: true},
		"cut before the answer": {Cut: true, Err: proxy},
		"ends before it":        {Cut: true},
		"cut after the answer":  {Cut: true, Frames: 1, Err: gone},
		"ends after it":         {Cut: true, Frames: 1},
		"hangs after it":        {Cut: true, Frames: 1, Hang: true},
	} {
		for _, version := range []connecttest.Version{connecttest.Spark42, connecttest.Spark40, connecttest.Spark35} {
			t.Run(name+"/"+string(version), func(t *testing.T) {
				inWorld(t, connecttest.Options{Version: version}, func(t *testing.T, w *world) {
					w.server.Inject(sparkpb.ExecutePlanMethod, fault, fault)
					w.server.Inject(sparkpb.ReattachExecuteMethod, fault)
					w.started(w.writer().Start(t.Context()))
					_, operation := w.performed()
					if !w.released(operation) {
						t.Error("the operation was not released")
					}
				})
			})
		}
	}
}

func TestAStartOutlivesAnOutage(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Late: true, Before: func(context.Context) {
			w.server.Refuse(true)
			time.AfterFunc(2*time.Minute, func() { w.server.Refuse(false) })
		}, Err: status.Error(codes.Unavailable, "gone")})
		w.started(w.writer().Start(t.Context()))
		if n := w.log.count("level=WARN"); n == 0 || n > 4 {
			t.Errorf("%d warnings in two minutes", n)
		}
	})
}

// What waits on the server goes on over as many streams as it takes.
func TestAWaitOutlivesManyStreams(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		q, err := w.writer().Start(t.Context())
		w.started(q, err)
		w.job.Change(q.RunID(), func(q *connecttest.Query) { q.DataAvailable = true })
		for i := range 3 {
			time.AfterFunc(time.Duration(i+1)*7*time.Minute, w.server.Disconnect)
		}
		time.AfterFunc(time.Hour, func() { w.job.Change(q.RunID(), func(q *connecttest.Query) { q.DataAvailable = false }) })
		began := time.Now()
		if err := q.ProcessAllAvailable(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < time.Hour || took > time.Hour+5*time.Minute {
			t.Errorf("took %v, want an hour", took)
		}
		operations, streams := map[string]bool{}, 0
		for _, r := range connecttest.CallsOf[*sparkpb.ExecutePlanRequest](w.server) {
			if r.GetPlan().GetCommand().GetStreamingQueryCommand().GetProcessAllAvailable() {
				operations[r.GetOperationId()] = true
				streams++
			}
		}
		if len(operations) != 1 || streams < 30 {
			t.Errorf("%d operations over %d streams, want one over a stream every two minutes", len(operations), streams)
		}
	})
}

func (w *world) plans() int {
	return len(connecttest.CallsOf[*sparkpb.ExecutePlanRequest](w.server))
}

// What Spark refuses is told at once, whole, and is not asked again.
func TestARefusedStart(t *testing.T) {
	long := strings.Repeat("a column that nobody knows. ", 200)
	for name, refusal := range map[string]struct {
		err         func(*connecttest.Server) error
		class, says string
	}{
		"with a class": {func(s *connecttest.Server) error { return s.Error("UNRESOLVED_COLUMN.WITH_SUGGESTION", long) },
			"UNRESOLVED_COLUMN.WITH_SUGGESTION", long},
		"with another class": {func(s *connecttest.Server) error { return s.Error("DATA_SOURCE_NOT_FOUND", "no such source") },
			"DATA_SOURCE_NOT_FOUND", "no such source"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
				// The server makes the error while it has its lock.
				err := refusal.err(w.server)
				w.job.Refuse(func(*sparkpb.Command) error { return err })
				began := time.Now()
				_, got := w.writer().Start(t.Context())
				var refused *Error
				if !errors.As(got, &refused) || refused.Class != refusal.class || !strings.Contains(refused.Message, refusal.says) {
					t.Fatalf("start: %v", got)
				}
				if refused.StackTrace == "" {
					t.Error("the stack trace was not asked for")
				}
				if took := time.Since(began); took > 0 || w.plans() != 1 {
					t.Errorf("took %v and %d plans, want an answer at once", took, w.plans())
				}
				if _, operation := w.performed(); !w.released(operation) {
					t.Error("the operation was not released")
				}
			})
		})
	}
}

// Of what Spark refuses without a class, its own words are enough.
func TestARefusedStartWithoutAClass(t *testing.T) {
	for _, version := range []connecttest.Version{connecttest.Spark42, connecttest.Spark35} {
		inWorld(t, connecttest.Options{Version: version}, func(t *testing.T, w *world) {
			w.started(w.writer().Start(t.Context()))
			_, err := w.writer().Start(t.Context())
			var refused *Error
			if !errors.As(err, &refused) || refused.Class != "" || !strings.Contains(refused.Message, "already active") {
				t.Errorf("Spark %s: %v", version, err)
			}
			if queries := w.job.Queries(); len(queries) != 1 || w.plans() != 2 {
				t.Errorf("Spark %s: %d queries by %d plans", version, len(queries), w.plans())
			}
		})
	}
}

// The answer to a refused start may be lost as well; it is still the same operation.
func TestALostRefusal(t *testing.T) {
	for _, version := range []connecttest.Version{connecttest.Spark42, connecttest.Spark40, connecttest.Spark35} {
		inWorld(t, connecttest.Options{Version: version}, func(t *testing.T, w *world) {
			w.job.SetQueries(connecttest.Query{ID: "q", RunID: "r", Name: "orders"})
			w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Cut: true, Err: status.Error(codes.Unavailable, "gone")})
			_, err := w.writer().Start(t.Context())
			var refused *Error
			if !errors.As(err, &refused) || !strings.Contains(refused.Message, "already active") {
				t.Errorf("Spark %s: %v", version, err)
			}
			w.performed()
		})
	}
}

// When ctx ends, the plan is interrupted, so that nothing waits on the server for nobody.
func TestAnAbandonedWaitIsReleased(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.job.SetQueries(connecttest.Query{ID: "q", RunID: "r", DataAvailable: true})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		if err := w.s.Streams().Run("q", "r").ProcessAllAvailable(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		_, operation := w.performed()
		if !w.released(operation) {
			t.Error("the operation was not released")
		}
	})
}

// An outage does not hold up who has no patience left.
func TestAnAbandonedStartInAnOutage(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err := w.writer().Start(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "start query orders") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took > time.Minute+2*farewell {
			t.Errorf("took %v", took)
		}
		w.restart()
	})
}

// A session that is gone is not made by a command, and one that was made again by another
// driver gets nothing that was meant for the earlier one.
func TestACommandMakesNoSession(t *testing.T) {
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		w.stop()
		w.restart()
		if _, err := w.writer().Start(t.Context()); !errors.Is(err, ErrSessionNotFound) {
			t.Errorf("start in a session that is not there: %v", err)
		}
		if _, exists := w.server.Session("etl", testSession); exists {
			t.Fatal("the session was made")
		}
	})
	inWorld(t, connecttest.Options{}, func(t *testing.T, w *world) {
		if err := w.s.Probe(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.server.Inject(sparkpb.ExecutePlanMethod, connecttest.Fault{Hang: true})
		time.AfterFunc(time.Second, func() {
			w.stop()
			w.restart()
			w.makeSession()
		})
		if _, err := w.writer().Start(t.Context()); !errors.Is(err, ErrSessionChanged) {
			t.Errorf("start in a session of another driver: %v", err)
		}
		synctest.Wait()
		if queries := w.job.Queries(); len(queries) != 0 {
			t.Errorf("the new session has %+v", queries)
		}
	})
}
