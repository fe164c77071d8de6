package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sparkbridge/configs"
	"sparkbridge/internal/journal"
	"sparkbridge/internal/watch"
	"sparkbridge/internal/web"
	"sparkbridge/sinks"
	"sparkbridge/sinks/kafka"
	"sparkbridge/sinks/redact"
)

// recent is how many of the journal's events tell a new process how queries are.
const recent = 20_000

// face is what the bridge shows of itself.
type face struct {
	version string
	started time.Time
	door    net.Listener // nil where no HTTP is served
	token   string
	board   *watch.Board
	writes  watch.Histogram
	failed  atomic.Uint64 // writes

	journal *journal.Journal
	sources []*source
	outlets []*outlet
}

func newFace(version string) *face {
	return &face{version: version, started: time.Now(), board: watch.NewBoard()}
}

// open opens the door for HTTP. That a port which nobody asked for is taken is no
// error.
func (f *face) open(ctx context.Context, cfg configs.HTTP, log *slog.Logger) error {
	address, optional := cfg.Address()
	if address == "" {
		return nil
	}
	door, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	switch {
	case err != nil && optional:
		log.Warn("no page and no metrics: the port is taken; set http.listen to another, or to off", "listen", address, "err", err)
		return nil
	case err != nil:
		return unopened(address, err)
	}
	f.door, f.token = door, cfg.Token.Reveal()
	return nil
}

// unopened is that an address which was asked for cannot be had: a name that nobody
// knows is wrong, while a port that is taken may be free at the next start.
func unopened(address string, err error) error {
	var name *net.DNSError
	if errors.As(err, &name) && name.IsNotFound || errors.As(err, new(*net.AddrError)) {
		return usage(fmt.Errorf("http.listen %s: %w: write host:port, with a name or address of this machine", address, err))
	}
	if errors.Is(err, unix.EADDRINUSE) {
		return broken(fmt.Errorf("http.listen %s: the port is taken, maybe by a bridge that runs already: end what listens there, or set another port, or off", address))
	}
	return broken(fmt.Errorf("http.listen %s: %w: set it to an address of this machine, or to off", address, err))
}

// close shuts the door, if it was opened and nobody answered at it.
func (f *face) close() {
	if f.door != nil {
		_ = f.door.Close() // it is closed already when serve has ended
	}
}

// wrote takes note of a write to the journal.
func (f *face) wrote(took time.Duration, err error) {
	f.writes.Add(took)
	if err != nil {
		f.failed.Add(1)
	}
}

// show makes the server that shows the parts.
func (f *face) show(j *journal.Journal, sources []*source, outlets []*outlet, log *slog.Logger) *web.Server {
	f.journal, f.sources, f.outlets = j, sources, outlets
	return web.New(web.Options{Status: f.status, Counts: f.board.Counts, Log: readable{j}, Token: f.token, Logger: log})
}

// serve answers HTTP until ctx ends.
func (f *face) serve(ctx context.Context, server *web.Server, log *slog.Logger) {
	if f.door == nil {
		return
	}
	log.Info("page, metrics and health", "url", "http://"+f.door.Addr().String())
	if err := server.Serve(ctx, f.door); err != nil {
		log.Error("no page and no metrics any more", "err", err)
	}
}

// observe shows the board what the journal holds and gets, until ctx ends. What is
// there before news is not counted, and what is of a source that is configured no
// more is left out: nobody would hear of the end of its queries.
func (f *face) observe(ctx context.Context, news uint64, log *slog.Logger) {
	first, _ := f.journal.Bounds()
	reader, err := f.journal.NewReader(max(first, news-min(recent, news-1)))
	if err != nil {
		log.Error("no numbers of queries", "err", err)
		return
	}
	defer reader.Close() //nolint:errcheck // only read from
	for ctx.Err() == nil {
		events, err := tape{reader}.Next(ctx, 256, 4<<20)
		var lost *sinks.LostError
		if err != nil && !errors.As(err, &lost) && ctx.Err() == nil {
			log.Error("no numbers of queries any more", "err", err)
			return
		}
		for _, e := range events {
			if f.follows(e.Source) {
				f.board.Observe(e, e.Sequence >= news)
			}
		}
	}
}

func (f *face) follows(name string) bool {
	return slices.ContainsFunc(f.sources, func(s *source) bool { return s.cfg.Name == name })
}

// status is how everything is.
func (f *face) status() watch.Status {
	st := watch.Status{
		Version: f.version, Started: f.started, Now: time.Now(),
		Journal: f.journalStatus(), Queries: f.board.Queries(),
		Sources: []watch.Source{}, Sinks: []watch.Sink{},
	}
	for _, s := range f.sources {
		st.Sources = append(st.Sources, s.status())
	}
	for _, o := range f.outlets {
		st.Sinks = append(st.Sinks, o.status(f.journal))
	}
	return st
}

func (f *face) journalStatus() watch.Journal {
	j := f.journal.Stats()
	return watch.Journal{
		First: j.First, Next: j.Next, Bytes: j.Bytes, Segments: j.Segments, Oldest: j.Oldest,
		Error: errorText(j.Err), Failing: j.Failing, Writes: f.writes.Durations(), Failures: f.failed.Load(),
	}
}

func (s *source) status() watch.Source {
	shown := s.states.shown.Load()
	if shown == nil {
		shown = &standing{}
	}
	return watch.Source{
		Name: s.cfg.Name, Required: s.cfg.Required, Duplicates: s.admission.Load().Duplicates(), Reattaches: s.reattaches.counts(),
		State: string(shown.State), Reason: redact.Text(shown.Reason), Since: shown.since, UserID: shown.UserID, SessionID: shown.SessionID,
		Starts: s.starter.shown(),
	}
}

func (o *outlet) status(j *journal.Journal) watch.Sink {
	w := o.worker.State()
	at := w.Next
	if at == 0 { // nothing was settled since the start
		at, _, _ = o.state.Cursor(o.name)
	}
	first, next := j.Bounds()
	at = min(max(at, first), next)
	oldest, _ := j.When(at) // of a journal that cannot be read its own numbers tell
	var ambiguous *uint64
	if k, ok := o.sink.(*kafka.Sink); ok {
		n := k.State().Ambiguous
		ambiguous = &n
	}
	return watch.Sink{
		Name: o.name, Kind: o.kind, Delivered: w.Delivered, Buried: w.Buried, DeadLetters: o.letters.count(), Ambiguous: ambiguous,
		Pending: next - at, Oldest: oldest, Error: errorText(w.Err), Since: w.Since, Failed: w.Failures, Stopped: w.Stopped, Lost: o.spool.gone.Load(), Failures: o.deliveries.Failures(), Took: o.deliveries.Took(),
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// readable is the journal as the API reads it.
type readable struct{ *journal.Journal }

// Read returns a reader whose first event is that of the given sequence.
func (r readable) Read(from uint64) (web.Reader, error) {
	reader, err := r.NewReader(from)
	if err != nil {
		return nil, err
	}
	return tape{reader}, nil
}
