package control

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stub is one sink with three dead letters and a journal of a hundred records, one a
// second.
type stub struct {
	letters          []sinks.Letter
	retried, dropped []uint64
	replays          []sinks.Replay
	counted          [][2]uint64
	woken            int
	began            time.Time
}

func newStub() *stub {
	s := &stub{began: time.Now().Add(-100 * time.Second)}
	for n := uint64(5); n <= 7; n++ {
		s.letters = append(s.letters, sinks.Letter{
			Event: listener.Event{Sequence: n, ID: "r:progress:1", Kind: listener.KindProgress, Source: "etl", Name: "orders", Payload: []byte(`{"batchId":1}`)},
			Cause: sinks.CauseRefused, Reason: "400", Attempts: 2, Time: s.began,
		})
	}
	return s
}

func (s *stub) Each(from uint64, fn func(sinks.Letter) error) error {
	for _, l := range s.letters {
		if l.Event.Sequence < from {
			continue
		}
		if err := fn(l); err != nil {
			return err
		}
	}
	return nil
}

func (s *stub) choose(named []uint64) (chosen []uint64) {
	for _, l := range s.letters {
		if len(named) == 0 || slices.Contains(named, l.Event.Sequence) {
			chosen = append(chosen, l.Event.Sequence)
		}
	}
	return chosen
}

func (s *stub) Retry(named []uint64) ([]uint64, error) {
	s.retried = append(s.retried, s.choose(named)...)
	return s.choose(named), nil
}

func (s *stub) Discard(named []uint64) ([]uint64, error) {
	s.dropped = append(s.dropped, s.choose(named)...)
	return s.choose(named), nil
}

func (s *stub) Unfinished() ([]sinks.Replay, error) { return s.replays, nil }

func (s *stub) Ask(from, to uint64) (sinks.Replay, error) {
	r := sinks.Replay{ID: "r1", From: from, To: to, Next: from}
	s.replays = append(s.replays, r)
	return r, nil
}

func (s *stub) Finish(string) error { s.replays = nil; return nil }

func (s *stub) Count(_ context.Context, from, to uint64) (int, error) {
	s.counted = append(s.counted, [2]uint64{from, to})
	return int(to - from), nil
}

func (s *stub) Bounds() (first, next uint64) { return 11, 101 }

func (s *stub) Since(t time.Time) (uint64, error) {
	return uint64(min(max(t.Sub(s.began)/time.Second, 0), 100)) + 1, nil
}

func (s *stub) When(sequence uint64) (time.Time, error) {
	return s.began.Add(time.Duration(sequence) * time.Second), nil
}

// serve runs a desk of one sink on a real socket.
func serve(t *testing.T, dir string, s *stub) *Client {
	t.Helper()
	socket, err := Listen(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	desk := &Desk{Journal: s, Sinks: []Sink{{Name: "events", Letters: s, Replays: s, Wake: func() { s.woken++ }}}, Rest: s}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- desk.Serve(ctx, socket, slog.New(slog.DiscardHandler)) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return Dial(dir)
}

func TestDeadLettersOverTheSocket(t *testing.T) {
	s := newStub()
	c, ctx := serve(t, t.TempDir(), s), t.Context()
	list, err := c.Letters(ctx, "")
	if err != nil || len(list) != 3 || list[0].Sink != "events" || list[0].Sequence != 5 || list[0].Cause != sinks.CauseRefused || list[0].Event != nil {
		t.Errorf("list %+v, %v", list, err)
	}
	one, err := c.Letter(ctx, "events", 6)
	if err != nil || one.Sequence != 6 || !strings.Contains(string(one.Event), `"data":{"batchId":1}`) {
		t.Errorf("show %+v %s, %v", one, one.Event, err)
	}
	if done, err := c.Retry(ctx, "events", []uint64{6, 99}); err != nil || !slices.Equal(done, []uint64{6}) || s.woken != 1 {
		t.Errorf("retried %v, %v, woken %d", done, err, s.woken)
	}
	if done, err := c.Drop(ctx, "events", nil); err != nil || !slices.Equal(done, []uint64{5, 6, 7}) || !slices.Equal(s.dropped, done) {
		t.Errorf("dropped %v, %v", done, err)
	}
}

// A receiver may repeat the event in its refusal, so the reason is masked like it.
func TestReasonsAreMasked(t *testing.T) {
	s := newStub()
	s.letters[0].Reason = "answered 422: jdbc:postgresql://db/x?user=etl&password=hunter2"
	c, ctx := serve(t, t.TempDir(), s), t.Context()
	list, err := c.Letters(ctx, "")
	if err != nil || !strings.HasPrefix(list[0].Reason, "answered 422: jdbc:") || strings.Contains(list[0].Reason, "hunter2") {
		t.Errorf("list: %q, %v", list[0].Reason, err)
	}
	one, err := c.Letter(ctx, "events", 5)
	if err != nil || one.Reason != list[0].Reason {
		t.Errorf("show: %q, %v", one.Reason, err)
	}
}

func TestReplaysOverTheSocket(t *testing.T) {
	s := newStub()
	c, ctx := serve(t, t.TempDir(), s), t.Context()
	dry, err := c.Replay(ctx, "events", Range{From: "1", To: "20", DryRun: true})
	if err != nil || dry.ID != "" || dry.From != 11 || dry.To != 20 || dry.Events != 9 || len(s.replays) != 0 || s.woken != 0 {
		t.Errorf("dry run %+v, %v", dry, err)
	}
	asked, err := c.Replay(ctx, "events", Range{From: "50s"})
	if err != nil || asked.ID != "r1" || asked.From < 50 || asked.From > 60 || asked.To != 101 || s.woken != 1 {
		t.Errorf("asked %+v, %v", asked, err)
	}
	at := s.began.Add(30*time.Second + 500*time.Millisecond).UTC()
	if r, err := c.Replay(ctx, "events", Range{From: at.Format(time.RFC3339), To: "1000", DryRun: true}); err != nil || r.From < 30 || r.From > 31 || r.To != 101 {
		t.Errorf("from a time %+v, %v", r, err)
	}
	if list, err := c.Replays(ctx, "events"); err != nil || len(list) != 1 || list[0].ID != "r1" {
		t.Errorf("list %+v, %v", list, err)
	}
	woken := s.woken
	if r, err := c.Cancel(ctx, "events", "r1"); err != nil || r.ID != "r1" || len(s.replays) != 0 || s.woken != woken+1 {
		t.Errorf("cancelled %+v, %v; woken %d times", r, err, s.woken-woken)
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	c, ctx := serve(t, t.TempDir(), newStub()), t.Context()
	for want, ask := range map[string]func() error{
		`no sink "pager": use one of events`: func() error { _, err := c.Letters(ctx, "pager"); return err },
		"no dead letter 8":                   func() error { _, err := c.Letter(ctx, "events", 8); return err },
		"none of these dead letters":         func() error { _, err := c.Drop(ctx, "events", []uint64{99}); return err },
		`"yesterday" is no place`:            func() error { _, err := c.Replay(ctx, "events", Range{From: "yesterday"}); return err },
		"nothing to replay between 500 and now: the journal holds sequences 11 to 100, recorded from 20": func() error { _, err := c.Replay(ctx, "events", Range{From: "500"}); return err },
		"nothing to replay between the oldest event and 3: the journal":                                  func() error { _, err := c.Replay(ctx, "events", Range{To: "3"}); return err },
		`no replay "x"`:                  func() error { _, err := c.Cancel(ctx, "events", "x"); return err },
		"name sequences, or all of them": func() error { return c.ask(ctx, "POST", "sinks/events/letters/drop", selection{}, nil) },
	} {
		if err := ask(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

func TestTheSocketIsTheOwnersOnly(t *testing.T) {
	dir := t.TempDir()
	serve(t, dir, newStub())
	info, err := os.Stat(filepath.Join(dir, socketName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// A folder far down has a name that no unix socket may have; one that a killed bridge
// left is replaced.
func TestTheSocketOfADeepFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep", 40))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, socketName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c := serve(t, dir, newStub())
	if list, err := c.Letters(t.Context(), "events"); err != nil || len(list) != 3 {
		t.Errorf("%d letters, %v", len(list), err)
	}
}

func TestNobodyThere(t *testing.T) {
	dir := t.TempDir()
	if _, err := Dial(dir).Letters(t.Context(), ""); !errors.Is(err, ErrNotRunning) {
		t.Errorf("no socket: %v", err)
	}
	open, err := Listen(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	open.(*socket).Listener.(*net.UnixListener).SetUnlinkOnClose(false) // as kill -9 leaves it
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Dial(dir).Letters(t.Context(), ""); !errors.Is(err, ErrNotRunning) {
		t.Errorf("a socket that was left: %v", err)
	}
}
