package bridge

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
	"sparkbridge/sinks/nats"
	"sparkbridge/sinks/webhook"
)

// broker is a real NATS server in this process with a stream for spark.>.
func broker(t *testing.T, stream jetstream.StreamConfig) (url string, js jetstream.JetStream) {
	t.Helper()
	running, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	running.Start()
	t.Cleanup(func() { running.Shutdown(); running.WaitForShutdown() })
	if !running.ReadyForConnections(30 * time.Second) {
		t.Fatal("nats-server did not start")
	}
	conn, err := natsgo.Connect(running.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	if js, err = jetstream.New(conn); err != nil {
		t.Fatal(err)
	}
	stream.Name, stream.Subjects = "spark", []string{"spark.>"}
	if _, err := js.CreateStream(t.Context(), stream); err != nil {
		t.Fatal(err)
	}
	return running.ClientURL(), js
}

// stored are the subjects and ids of what the stream has, in its order.
func stored(t *testing.T, js jetstream.JetStream) (all []string) {
	t.Helper()
	stream, err := js.Stream(t.Context(), "spark")
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(1); n <= stream.CachedInfo().State.LastSeq; n++ {
		msg, err := stream.GetMsg(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, msg.Subject+" "+msg.Header.Get("ce-id"))
	}
	return all
}

// eventually waits for something that happens soon.
func eventually(t *testing.T, what string, true func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !true(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// runOutlets runs sinks on a journal until stop is called.
func runOutlets(t *testing.T, j *journal.Journal, cfg *configs.Config) (outlets []*outlet, stop func()) {
	t.Helper()
	outlets, err := openOutlets(cfg, j, "test", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, len(outlets))
	for _, o := range outlets {
		go func() { ended <- o.run(ctx) }()
	}
	return outlets, func() {
		cancel()
		for range outlets {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
}

func put(t *testing.T, j *journal.Journal, events ...listener.Event) {
	t.Helper()
	for _, e := range events {
		e.Source, e.Origin, e.Payload = "etl", listener.OriginBus, []byte(`{"id":"q"}`)
		if _, err := j.Append(t.Context(), listener.EncodeRecord(e)); err != nil {
			t.Fatal(err)
		}
	}
}

func progressOf(query string, batch int64) listener.Event {
	return listener.Event{ID: fmt.Sprintf("%s:progress:%d", query, batch), Kind: listener.KindProgress, QueryID: query, RunID: query, Name: query, BatchID: batch}
}

func endOf(query string, outcome listener.Outcome) listener.Event {
	return listener.Event{ID: query + ":terminated", Kind: listener.KindTerminated, QueryID: query, RunID: query, Name: query, BatchID: listener.NoBatch, Outcome: outcome}
}

// From the journal to a real stream: what is wanted goes where its template says, what
// the stream cannot take becomes a dead letter, and a replay is stored again.
func TestRoutesIntoARealStream(t *testing.T) {
	url, js := broker(t, jetstream.StreamConfig{MaxMsgSize: 2200})
	cfg := &configs.Config{Sources: []configs.Source{{Name: "etl", Labels: map[string]string{"team": "pay"}}}}
	cfg.Sinks = []configs.Sink{{
		Name: "events", From: configs.FromOldest, ProgressEvery: time.Hour, DeadLetters: configs.DeadLetters{Max: 10}, GiveUp: time.Hour,
		Match: sinks.Match{Queries: []string{"orders*"}, Outcomes: []listener.Outcome{listener.OutcomeFailed}},
		NATS:  natsConfig(url, "spark.{labels.team}.{query}.{kind}"),
	}}
	j := openJournal(t, t.TempDir(), journal.Options{})
	large := endOf("orders-large", listener.OutcomeFailed)
	large.Name, large.UserID, large.ErrorClass = "orders-"+strings.Repeat("n", 800), strings.Repeat("u", 800), strings.Repeat("E", 800)
	put(t, j,
		progressOf("orders-1", 0), progressOf("clicks", 0), progressOf("orders-1", 1), endOf("orders-2", listener.OutcomeStopped),
		large, endOf("orders-1", listener.OutcomeFailed), endOf("clicks", listener.OutcomeFailed))
	outlets, stop := runOutlets(t, j, cfg)
	defer stop()
	o := outlets[0]
	eventually(t, "the journal is delivered", func() bool { return o.worker.State().Next == 8 })
	want := []string{"spark.pay.orders-1.progress orders-1:progress:1", "spark.pay.orders-1.terminated orders-1:terminated"}
	if got := stored(t, js); !slices.Equal(got, want) {
		t.Errorf("stored\n %s, want\n %s", got, want)
	}
	list := lettersFrom(t, o.letters, 0)
	if len(list) != 1 || list[0].Event.Sequence != 5 || list[0].Cause != sinks.CauseRefused || !strings.Contains(list[0].Reason, "cannot be cut") {
		t.Fatalf("letters %+v", list)
	}

	if n, err := o.replays.Count(t.Context(), 6, 8); n != 1 || err != nil {
		t.Errorf("counted %d, %v", n, err)
	}
	if _, err := o.replays.Ask(6, 8); err != nil {
		t.Fatal(err)
	}
	o.worker.Wake()
	eventually(t, "the replay is finished", func() bool { _, ok, _ := o.replays.First(); return !ok })
	if got := stored(t, js); !slices.Equal(got, append(want, want[1])) {
		t.Errorf("after the replay %s", got)
	}
	if at := o.worker.State().Next; at != 8 {
		t.Errorf("the replay moved the cursor to %d", at)
	}
}

// Over restarts, a new filter, a sink that goes and one that comes disturb no other: each
// goes on where it was, and the place of the one that has gone is kept.
func TestSinksComeAndGo(t *testing.T) {
	var got []string
	lock := make(chan struct{}, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		lock <- struct{}{}
		got = append(got, r.URL.Path[1:]+" "+r.Header.Get("webhook-id"))
		<-lock
	}))
	defer hook.Close()
	sink := func(name string, kinds ...listener.Kind) configs.Sink {
		return configs.Sink{
			Name: name, From: configs.FromOldest, DeadLetters: configs.DeadLetters{Max: 10},
			Match: sinks.Match{Kinds: kinds}, Webhook: webhookConfig(hook.URL + "/" + name),
		}
	}
	dir := t.TempDir()
	run := func(event listener.Event, wait uint64, sinks ...configs.Sink) []string {
		t.Helper()
		got = nil
		j, err := journal.Open(dir, journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		put(t, j, event)
		outlets, stop := runOutlets(t, j, &configs.Config{Sinks: sinks})
		for _, o := range outlets {
			eventually(t, o.name, func() bool { at, _, _ := j.State().Cursor(o.name); return at == wait })
		}
		stop()
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got)
		return got
	}
	want := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	want(run(progressOf("q", 0), 2, sink("a"), sink("b")), "a q:progress:0", "b q:progress:0")
	want(run(progressOf("q", 1), 3, sink("a", listener.KindTerminated), sink("c")), "c q:progress:0", "c q:progress:1") // b has gone
	want(run(endOf("q", listener.OutcomeFailed), 4, sink("a"), sink("b"), sink("c")), "a q:terminated", "b q:progress:1", "b q:terminated", "c q:terminated")
}

func natsConfig(url, subject string) *nats.Config {
	return &nats.Config{URL: url, Subject: subject, JetStream: true}
}

func webhookConfig(url string) *webhook.Config { return &webhook.Config{URL: url} }
