package bridge

import (
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect/connecttest"
	"sparkbridge/internal/watch"
	"sparkbridge/listener"
)

// What the bridge shows of a query and a source, and what a second process shows of
// what it finds in the journal.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		s := w.job(query("a"))
		w.start()
		after(time.Minute)
		s.Progress(progress("a", 0))
		s.Progress(progress("a", 1))
		after(time.Minute)
		st := w.face.status()
		if len(st.Sources) != 1 || st.Sources[0].State != "attached" || st.Sources[0].SessionID != sessionID || st.Sources[0].Since.IsZero() {
			t.Errorf("sources %+v", st.Sources)
		}
		if len(st.Queries) != 1 || st.Queries[0].Label != "n-a" || !st.Queries[0].IsActive || st.Queries[0].BatchID != 1 || st.Queries[0].Batches != 2 {
			t.Errorf("queries %+v", st.Queries)
		}
		counts := w.face.board.Counts()
		if counts.Events[watch.EventKey{Source: "etl", Kind: listener.KindProgress, Origin: listener.OriginBus}] != 2 || counts.Changes[watch.ChangeKey{Source: "etl", State: "attached"}] != 1 {
			t.Errorf("counts %+v", counts)
		}
		if j := st.Journal; j.Next != uint64(len(w.eventsSoFar()))+1 || j.Bytes == 0 || j.Oldest.IsZero() || j.Error != "" || j.Writes.Count == 0 {
			t.Errorf("journal %+v", j)
		}
		w.halt()

		w.start()
		after(time.Minute)
		st = w.face.status()
		if len(st.Queries) != 1 || !st.Queries[0].IsActive || st.Queries[0].BatchID != 1 || st.Queries[0].Batches != 0 {
			t.Errorf("queries of the second process %+v", st.Queries)
		}
		if n := w.face.board.Counts().Events[watch.EventKey{Source: "etl", Kind: listener.KindProgress, Origin: listener.OriginBus}]; n != 0 {
			t.Errorf("the second process counts %d batches of the first", n)
		}
		w.halt()
	})
}

// Of a source that is configured no more nothing is shown: its queries would run for
// ever.
func TestASourceThatIsGoneShowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, connecttest.Options{})
		s := w.job(query("a"))
		w.start()
		after(time.Minute)
		s.Progress(progress("a", 0))
		after(time.Minute)
		w.halt()
		s.SetQueries()
		w.source.Name = "other"
		w.start()
		after(time.Minute)
		if st := w.face.status(); len(st.Queries) != 0 || st.Journal.Next < 3 {
			t.Errorf("queries %+v", st.Queries)
		}
		w.halt()
	})
}

// eventsSoFar reads the journal of a bridge that runs.
func (w *world) eventsSoFar() (all []listener.Event) {
	w.t.Helper()
	reader, err := readable{w.face.journal}.Read(1)
	if err != nil {
		w.t.Fatal(err)
	}
	defer reader.Close()
	for _, next := w.face.journal.Bounds(); uint64(len(all))+1 < next; {
		events, err := reader.Next(w.t.Context(), 100, 1<<20)
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, events...)
	}
	return all
}

// A port that nobody asked for may be taken; one that was asked for may not.
func TestTheDoor(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", configs.DefaultListen)
	if err == nil {
		defer taken.Close()
	} // else somebody else has it, which does as well
	log := slog.New(slog.DiscardHandler)
	f := newFace("test")
	if err := f.open(t.Context(), configs.HTTP{Listen: "auto"}, log); err != nil || f.door != nil {
		t.Errorf("the default: %v", err)
	}
	var coded *exitError
	if err := f.open(t.Context(), configs.HTTP{Listen: configs.DefaultListen}, log); !errors.As(err, &coded) || coded.ExitCode() != exitBroken || !strings.Contains(err.Error(), "http.listen 127.0.0.1:4050: the port is taken") {
		t.Errorf("asked for: %v", err)
	}
	if err := f.open(t.Context(), configs.HTTP{Listen: "127.0.0.1:99999"}, log); !isUsage(err) {
		t.Errorf("no port: %v", err)
	}
	for wrong, unknown := range map[bool]*net.DNSError{true: {Err: "no such host", IsNotFound: true}, false: {Err: "timeout", IsTimeout: true}} {
		if err := unopened("nowhere:1", &net.OpError{Op: "listen", Err: unknown}); isUsage(err) != wrong || !errors.As(err, &coded) {
			t.Errorf("a name that leads nowhere: %v", err)
		}
	}
	for _, none := range []string{"off", ""} {
		if err := f.open(t.Context(), configs.HTTP{Listen: none}, log); err != nil || f.door != nil {
			t.Errorf("%q: %v", none, err)
		}
	}
	if err := f.open(t.Context(), configs.HTTP{Listen: "127.0.0.1:0"}, log); err != nil || f.door == nil {
		t.Errorf("a free port: %v", err)
	}
	f.close()
}

// Where HTTP cannot be served as configured, no journal is made.
func TestNoJournalWithoutADoor(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for listen, code := range map[string]int{"127.0.0.1:99999": exitUsage, taken.Addr().String(): exitBroken} {
		dir := filepath.Join(t.TempDir(), "journal")
		cfg := &configs.Config{HTTP: configs.HTTP{Listen: listen}, Journal: configs.Journal{Dir: dir}}
		var coded *exitError
		if err := Run(t.Context(), cfg, slog.New(slog.DiscardHandler), "test"); !errors.As(err, &coded) || coded.code != code {
			t.Errorf("%s: %v", listen, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the journal is there: %v", listen, err)
		}
	}
}

func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for name, listen := range map[string]string{path: path, "@sparkbridge-test-notify": "\x00sparkbridge-test-notify"} {
		systemd, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: listen, Net: "unixgram"})
		if err != nil {
			t.Fatal(err)
		}
		if err := notifyBy(t.Context(), name, notifyReady); err != nil {
			t.Error(err)
		}
		told := make([]byte, 100)
		n, err := systemd.Read(told)
		if string(told[:n]) != "READY=1" || err != nil {
			t.Errorf("%s was told %q, %v", name, told[:n], err)
		}
		systemd.Close()
	}
	if err := notifyBy(t.Context(), "", notifyReady); err != nil {
		t.Errorf("without systemd: %v", err)
	}
	if err := notifyBy(t.Context(), path+"-none", notifyReady); err == nil {
		t.Error("a socket that is not there is no error")
	}
}
