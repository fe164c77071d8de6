package bridge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
	"sparkbridge/sinks/webhook"
)

// checked checks the source of a world for at most ten seconds.
func (w *world) checked() *Report {
	w.t.Helper()
	if w.source.Remote == "" && w.source.RemoteFile == "" {
		w.source.Remote = configs.ConnectionString(fmt.Sprintf("sc://%s/;user_id=u;session_id=%s", w.spark.Addr(), sessionID))
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
	defer cancel()
	client := connect.NewClient(connect.ClientOptions{Dial: []grpc.DialOption{grpc.WithContextDialer(w.spark.Dialer)}})
	r := check(ctx, &configs.Config{Sources: []configs.Source{w.source}}, client, "test")
	if w.spark.Adds()+w.spark.Removes() > 0 {
		w.t.Error("the check has touched the bus")
	}
	return r
}

// wantFindings compares state, subject and a part of the text of each finding, and
// the exit code.
func wantFindings(t *testing.T, r *Report, code int, want ...[3]string) {
	t.Helper()
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + text.String())
	var got []Finding
	for _, c := range slices.Concat(r.Sources, r.Sinks) {
		got = append(got, c.Findings...)
	}
	if len(got) != len(want) {
		t.Fatalf("%d findings, want %d", len(got), len(want))
	}
	for i, f := range got {
		if string(f.State) != want[i][0] || f.About != want[i][1] || !strings.Contains(f.Text, want[i][2]) {
			t.Errorf("finding %d: %+v, want %q", i, f, want[i])
		}
	}
	exit := 0
	var coded interface{ ExitCode() int }
	if errors.As(r.Err(), &coded) {
		exit = coded.ExitCode()
	}
	if exit != code || r.Works != (code == 0) {
		t.Errorf("exit code %d, works %t, want %d: %v", exit, r.Works, code, r.Err())
	}
}

var (
	serverOK  = [3]string{"ok", "server", "answers after"}
	tokenOK   = [3]string{"ok", "token", ""}
	sessionOK = [3]string{"ok", "session", "is there"}
)

func TestCheckOfASource(t *testing.T) {
	for name, c := range map[string]struct {
		options connecttest.Options
		prepare func(w *world)
		code    int
		want    [][3]string
	}{
		"no server": {connecttest.Options{}, func(w *world) { _ = w.spark.Stop() }, 1, [][3]string{
			{"problem", "server", "has not answered in 10s"},
		}},
		"server that hangs": {connecttest.Options{}, func(w *world) {
			for range 10 {
				w.spark.Inject(sparkpb.ReleaseExecuteMethod, connecttest.Fault{Hang: true})
			}
		}, 1, [][3]string{{"problem", "server", "has not answered in 10s"}}},
		"no token": {connecttest.Options{Token: "right"}, func(*world) {}, 2, [][3]string{
			serverOK, {"problem", "token", "SPARK_CONNECT_AUTHENTICATE_TOKEN"},
		}},
		"wrong token": {connecttest.Options{Token: "right"}, func(w *world) { w.source.Token = "wrong" }, 2, [][3]string{
			serverOK, {"problem", "token", "set token"},
		}},
		"right token, no session yet": {connecttest.Options{Token: "right"}, func(w *world) { w.source.Token = "right" }, 0, [][3]string{
			serverOK, {"ok", "token", "accepted"}, {"ok", "session", "is not there yet; the bridge waits until the job makes it"},
		}},
		"session to be made": {connecttest.Options{}, func(w *world) { w.source.CreateSession = true }, 0, [][3]string{
			serverOK, tokenOK, {"ok", "session", "the bridge makes it"},
		}},
		"closed session": {connecttest.Options{}, func(w *world) { w.job().Close() }, 1, [][3]string{
			serverOK, tokenOK, {"problem", "session", "new session_id"},
		}},
		"no query": {connecttest.Options{}, func(w *world) { w.job() }, 0, [][3]string{
			serverOK, tokenOK, sessionOK, {"ok", "version", "Spark 4.2.0"}, {"ok", "bus", "another client"}, {"ok", "queries", "first_query"},
		}},
		"spark 3.5 without the session": {connecttest.Options{Version: connecttest.Spark35}, func(*world) {}, 0, [][3]string{
			serverOK, tokenOK, {"ok", "session", "before 4.0"},
		}},
		"spark 3.5": {connecttest.Options{Version: connecttest.Spark35}, func(w *world) { w.job() }, 0, [][3]string{
			serverOK, tokenOK, sessionOK, {"ok", "version", "Spark 3.5.0"}, {"ok", "bus", "will be polled every 5s"}, {"ok", "queries", "none is active"},
		}},
		"spark 3.5 with mode bus": {connecttest.Options{Version: connecttest.Spark35}, func(w *world) {
			w.source.Mode = configs.ModeBus
			w.job()
		}, 1, [][3]string{
			serverOK, tokenOK, sessionOK, {"ok", "version", ""}, {"problem", "bus", "set mode: auto or mode: poll"}, {"ok", "queries", ""},
		}},
		"polled too rarely": {connecttest.Options{}, func(w *world) {
			w.source.Mode, w.source.PollInterval = configs.ModePoll, time.Minute
			w.job(running("fast", 100*time.Millisecond, 99))
		}, 1, [][3]string{
			serverOK, tokenOK, sessionOK, {"ok", "version", ""}, {"ok", "bus", "left alone"}, {"problem", "query", "shorten that to 5s"},
		}},
		"file that is not there": {connecttest.Options{}, func(w *world) { w.source.RemoteFile = filepath.Join(w.dir, "none") }, 1, [][3]string{
			{"problem", "remote_file", "waits until the job has written"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, c.options)
				c.prepare(w)
				_, before := w.spark.Session("u", sessionID)
				wantFindings(t, w.checked(), c.code, c.want...)
				if _, after := w.spark.Session("u", sessionID); after != before {
					t.Error("the check has made the session")
				}
			})
		})
	}
}

// running is a query that has finished so many batches.
func running(run string, every time.Duration, batches int) connecttest.Query {
	q := query(run)
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range batches {
		q.Recent = append(q.Recent, fmt.Sprintf(`{"id":"%s","runId":"%s","name":"%s","timestamp":"%s","batchId":%d,"durationMs":{"addBatch":1,"triggerExecution":2},"sources":[]}`,
			q.ID, q.RunID, q.Name, at.Add(time.Duration(n)*every).Format("2006-01-02T15:04:05.000Z"), n))
	}
	return q
}

func TestCheckTellsHowLongTheBridgeMayBeAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		unnamed := running("young", time.Minute, 3)
		unnamed.Name = ""
		strange := running("new", 0, 0)
		strange.Name = "a\x1b[2J\nb"
		w.job(running("orders", 2*time.Second, 99), unnamed, strange, connecttest.Query{ID: "q-past", RunID: "past", Stopped: true})
		r := w.checked()
		wantFindings(t, r, 0, serverOK, tokenOK, sessionOK, [3]string{"ok", "version", ""}, [3]string{"ok", "bus", ""},
			[3]string{"ok", "query", "n-orders (q-orders): a batch every 2.0 s, 99 kept: the bridge may be away for about 3m18s before batches are out of reach"},
			[3]string{"ok", "query", "unnamed (q-young): a batch every 1m, 3 kept so far (99 unless"},
			[3]string{"unknown", "query", "a [2J b (q-new): no batch yet"},
			[3]string{"ok", "restart", "within 5m after a crash loses nothing at all"})
		want := CheckedQuery{ID: "q-orders", RunID: "orders", Name: "n-orders", Progress: 99, Kept: 99, IntervalSeconds: 2, AwaySeconds: 198}
		if r.Sources[0].Queries[0] != want || len(r.Sources[0].Queries) != 3 || r.Sources[0].SparkVersion != "4.2.0" {
			t.Errorf("%+v", r.Sources[0])
		}
	})
}

// What is slow or broken has a line of its own, and keeps nobody from the others.
func TestCheckAsksAllBesideEachOther(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	receiver := httptest.NewServer(http.NotFoundHandler())
	defer receiver.Close()
	remote := func(user string) configs.ConnectionString {
		return configs.ConnectionString(fmt.Sprintf("sc://%s/;user_id=%s;session_id=%s", silent.Addr(), user, sessionID))
	}
	cfg := &configs.Config{
		Sources: []configs.Source{{Name: "a", Remote: remote("a")}, {Name: "b", Remote: remote("b")}},
		Sinks: []configs.Sink{
			{Name: "slow", Webhook: &webhook.Config{URL: "https://" + silent.Addr().String()}},
			{Name: "pager", Webhook: &webhook.Config{URL: receiver.URL}},
		},
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	began := time.Now()
	r := Check(ctx, cfg, "test")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	wantFindings(t, r, 1, [3]string{"problem", "server", "has not answered"}, [3]string{"problem", "server", "has not answered"},
		[3]string{"problem", "server", "deadline"}, [3]string{"ok", "server", "nothing was sent"})
	if err := r.Err(); !strings.Contains(err.Error(), "3 of 4") {
		t.Error(err)
	}
}
