package bridge

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/connect/connecttest"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// A tail hands out what a bridge would keep, and lets go of the bus.
func TestTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		s := w.job(query("a"))
		w.source.Remote = configs.ConnectionString("sc://" + w.spark.Addr() + "/;user_id=u;session_id=" + sessionID)
		j, err := journal.Open(t.TempDir(), journal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		log := slog.New(slog.NewTextHandler(w.log, nil))
		client := connect.NewClient(connect.ClientOptions{Log: log, Dial: []grpc.DialOption{grpc.WithContextDialer(w.spark.Dialer)}})
		ctx, stop := context.WithCancel(t.Context())
		var ids []string
		done := make(chan error, 1)
		go func() {
			done <- tail(ctx, w.source, j, client, log, func(e listener.Event) error {
				if e.Kind != listener.KindBus {
					ids = append(ids, e.ID)
				}
				return nil
			})
		}()
		after(time.Minute)
		s.Progress(progress("a", 0))
		after(time.Minute)
		stop()
		if err := <-done; err != nil {
			t.Errorf("tail: %v", err)
		}
		if !slices.Equal(ids, []string{"a:started:inferred", "a:progress:0"}) {
			t.Errorf("events %v\n%s", ids, w.log)
		}
		if holder, taken := s.Holder(); taken {
			t.Errorf("the bus is still held by %q", holder)
		}
	})
}

func TestTailEndsWithItsReader(t *testing.T) {
	full := errors.New("disk full")
	err := Tail(t.Context(), configs.Source{Name: "etl", Remote: "sc://127.0.0.1:1/;user_id=u;session_id=" + sessionID, PollInterval: time.Second, Mode: configs.ModePoll},
		sinks.Match{}, slog.New(slog.DiscardHandler), "test", func(listener.Event) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("tail: %v", err)
	}
}

func TestTailTakesWhatIsWantedWithoutCredentials(t *testing.T) {
	var got []listener.Event
	take := wanted(sinks.Match{Queries: []string{"orders"}}, func(e listener.Event) error { got = append(got, e); return nil })
	for _, name := range []string{"clicks", "orders"} {
		if err := take(listener.Event{Kind: listener.KindTerminated, Name: name, Payload: []byte(`{"exception":"boom password=leak-pw"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 1 || got[0].Name != "orders" || strings.Contains(string(got[0].Payload), "leak-pw") {
		t.Errorf("%+v", got)
	}
}
