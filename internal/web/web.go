// Package web is the bridge's face: a page, a JSON API, events as they come,
// metrics and health. It reads what others know and changes nothing.
package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sparkbridge/internal/watch"
	"sparkbridge/listener"
)

const (
	// headerPatience bounds how long a client may take to send its request.
	headerPatience = 10 * time.Second
	// writePatience bounds how long a client may take to read a part of an answer.
	writePatience = 30 * time.Second
	// idlePatience bounds how long a connection may be kept without a request.
	idlePatience = 2 * time.Minute
	// closePatience is how long answers under way have when the server stops.
	closePatience = time.Second
)

// Log is the journal as the API reads it.
type Log interface {
	// Bounds returns the sequence of the oldest event, and the one of the next.
	Bounds() (first, next uint64)
	// Since returns the sequence of the first event recorded at t or later.
	Since(t time.Time) (uint64, error)
	// Read returns a reader whose first event is that of the given sequence.
	Read(from uint64) (Reader, error)
}

// Reader hands out events in the order of the journal.
type Reader interface {
	// Next blocks until there are events. A *sinks.LostError says that events are gone;
	// Next may be called again and goes on behind them.
	Next(ctx context.Context, maxEvents, maxBytes int) ([]listener.Event, error)
	Close() error
}

// Options are the parts of a Server; all but Token must be set.
type Options struct {
	Status func() watch.Status
	Counts func() watch.Counts
	Log    Log
	// Token guards the page and the API; they are open where it is empty, to clients
	// that name this machine as localhost.
	Token  string
	Logger *slog.Logger
}

// Server answers HTTP.
type Server struct {
	o       Options
	handler http.Handler
	open    http.Handler // to everybody who can ask
	// stopping ends the answers that have no end of their own.
	stopping context.Context
	stop     context.CancelFunc
}

// New makes a server; Serve lets it answer.
func New(o Options) *Server {
	s := &Server{o: o}
	s.stopping, s.stop = context.WithCancel(context.Background())
	metrics := promhttp.HandlerFor(newRegistry(o.Status, o.Counts), promhttp.HandlerOpts{})
	s.handler = s.routes(metrics, s.guarded)
	s.open = s.routes(metrics, func(h http.HandlerFunc) http.Handler { return h })
	return s
}

// routes are the paths, with a guard before what tells of the jobs.
func (s *Server) routes(metrics http.Handler, guard func(http.HandlerFunc) http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", s.livez)
	mux.HandleFunc("GET /readyz", s.readyz)
	mux.Handle("GET /metrics", metrics)
	mux.Handle("GET /{$}", guard(s.page))
	mux.Handle("GET /api/v1/status", guard(s.status))
	mux.Handle("GET /api/v1/events", guard(s.events))
	return mux
}

// Open answers the same without a token, for a door that only the owner of the
// process can open.
func (s *Server) Open() http.Handler { return s.open }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Serve answers what comes in by l until ctx ends, which is no error. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headerPatience, IdleTimeout: idlePatience,
		WriteTimeout: writePatience, // a stream of events sets it anew for each of its parts
		ErrorLog:     slog.NewLogLogger(s.o.Logger.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	select {
	case err := <-ended:
		s.stop()
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	s.stop()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	if server.Shutdown(closing) != nil {
		_ = server.Close() // whoever still reads has had their time
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve http: %w", err)
	}
	return nil
}
