package sinks_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	gonats "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"sparkbridge/listener"
	"sparkbridge/sinks"
	"sparkbridge/sinks/nats"
)

// stream is a JetStream on a real server that takes all events, and drops repeats.
func stream(t *testing.T) (url string, stored func() []string) {
	t.Helper()
	running, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, JetStream: true, StoreDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	running.Start()
	t.Cleanup(func() {
		running.Shutdown()
		running.WaitForShutdown()
	})
	if !running.ReadyForConnections(30 * time.Second) {
		t.Fatal("nats-server did not start")
	}
	conn, err := gonats.Connect("", gonats.InProcessServer(running), gonats.NoReconnect())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	own, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "EVENTS", Subjects: []string{"spark.>"}, Duplicates: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return running.ClientURL(), func() (ids []string) {
		t.Helper()
		info, err := own.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for n := range info.State.LastSeq {
			m, err := own.GetMsg(t.Context(), n+1)
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, m.Header.Get("ce-id"))
		}
		return ids
	}
}

// picky refuses what it is told to.
type picky struct {
	sinks.Sink
	refuses func(*listener.Event) bool
}

func (p *picky) Deliver(ctx context.Context, events []listener.Event) (int, error) {
	for i := range events {
		if p.refuses(&events[i]) {
			if acked, err := p.Sink.Deliver(ctx, events[:i]); err != nil {
				return acked, err
			}
			return i, sinks.Permanent(errors.New("400"))
		}
	}
	return p.Sink.Deliver(ctx, events)
}

// Within the time in which JetStream drops repeats, everything that is asked for is
// stored, under the id that it had at first: each of two replays, a dead letter of a
// replay whose event is there already, and one that has become a dead letter again.
func TestJetStreamStoresWhatIsAskedForAgain(t *testing.T) {
	url, stored := stream(t)
	sink, err := nats.New(nats.Config{URL: url, Subject: "spark.events", JetStream: true}, "events", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	p := &picky{sink, func(e *listener.Event) bool {
		if e.Replay == "r3" || refused == 1 && e.Replay != "" {
			refused++
			return true
		}
		return false
	}}
	s, b := &script{}, &box{journal: events(1, 3)}
	for i := range b.journal {
		b.journal[i].Kind, b.journal[i].Source, b.journal[i].Payload = listener.KindProgress, "etl", []byte("{}")
	}
	w, stop := s.run(t, b, func(o *sinks.Options) { o.Sink = p })
	until := func(what string, count int, done func() bool) {
		t.Helper()
		for began := time.Now(); !done(); time.Sleep(time.Millisecond) {
			if time.Since(began) > time.Minute {
				t.Fatalf("%s takes for ever: %+v, stored %v", what, w.State(), stored())
			}
		}
		if got := stored(); len(got) != count {
			t.Fatalf("after %s there are %v, want %d", what, got, count)
		}
	}
	s.fed <- slices.Clone(b.journal)
	until("delivery", 3, func() bool { return w.State().Delivered == 3 })
	s.fed <- slices.Clone(b.journal) // what a restart repeats is dropped
	until("repeat", 3, func() bool { return w.State().Delivered == 6 })
	for n, id := range []string{"r1", "r2"} {
		b.ask(sinks.Replay{ID: id, From: 1, To: 4})
		w.Wake()
		until("replay", 6+3*n, func() bool { return len(b.asked()) == 0 })
	}
	b.ask(sinks.Replay{ID: "r3", From: 2, To: 3})
	w.Wake()
	until("refused replay", 9, func() bool { return len(b.asked()) == 0 && len(b.list(t)) == 1 })
	b.retry(t)
	w.Wake()
	until("refused retry", 9, func() bool { l := b.list(t); return len(l) == 1 && !l[0].Retry && l[0].Attempts == 2 })
	b.retry(t)
	w.Wake()
	until("retry", 10, func() bool { return len(b.list(t)) == 0 })
	b.ask(sinks.Replay{ID: "r4", From: 2, To: 3})
	w.Wake()
	until("replay of it", 11, func() bool { return len(b.asked()) == 0 })
	if got := strings.Join(stored(), ""); got != "12312312322" {
		t.Errorf("stored %s", got)
	}
	if err := errors.Join(stop(), sink.Close()); err != nil {
		t.Error(err)
	}
}
