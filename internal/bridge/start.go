package bridge

import (
	"context"
	"errors"
	"time"

	"sparkbridge/connect"
	"sparkbridge/internal/queries"
	"sparkbridge/internal/watch"
	"sparkbridge/sinks/redact"
)

// tend follows the session by run, and starts the configured queries meanwhile, so that
// nothing of them is missed. It returns when both have ended.
func (s *source) tend(ctx context.Context, run func(context.Context) error) error {
	starting, stop := context.WithCancel(ctx)
	defer stop()
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.startQueries(starting)
	}()
	err := run(ctx)
	stop()
	<-over
	return err
}

// startQueries starts what is to be started, and tries again for as long as the session
// cannot be asked.
func (s *source) startQueries(ctx context.Context) {
	waits, last := newPatience(time.Second, time.Minute), ""
	for len(s.starter.waiting()) > 0 {
		err := s.startWaiting(ctx)
		if err == nil || ended(ctx) {
			return
		}
		if err.Error() != last {
			last = err.Error()
			s.log.Warn("queries cannot be started yet; it is tried again", "err", redact.Text(last))
		}
		if !waited(ctx, waits.next()) {
			return
		}
	}
}

// startWaiting starts the queries that wait for it, and leaves alone what runs already. An
// error says that the session cannot be asked now.
func (s *source) startWaiting(ctx context.Context) error {
	active, err := s.session.Active(ctx)
	if err != nil {
		return err
	}
	for _, i := range s.starter.waiting() {
		if named(active, s.cfg.Queries[i].Name) {
			s.leaveAlone(i)
		}
	}
	if len(s.starter.waiting()) == 0 {
		return nil
	}
	if prepared, err := s.prepare(ctx); !prepared {
		return err
	}
	for _, i := range s.starter.waiting() {
		if err := s.startQuery(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the settings of the session and runs the statements before its queries, once.
// Where Spark refuses one, no query is started.
func (s *source) prepare(ctx context.Context) (prepared bool, err error) {
	if s.starter.isPrepared() {
		return true, nil
	}
	err = queries.Prepare(ctx, s.session, s.cfg.Conf, s.cfg.Setup)
	switch {
	case err == nil:
		s.starter.prepare()
		return true, nil
	case ended(ctx), leftOpen(err):
		return false, err
	}
	for _, i := range s.starter.waiting() {
		s.refused(i, err)
	}
	return false, nil
}

// startQuery starts one query. What Spark refuses is told once, is not tried again in this
// session, and is no error.
func (s *source) startQuery(ctx context.Context, i int) error {
	q, err := queries.StartAround(ctx, s.session, &s.cfg.Queries[i], s.admission.Load().Start)
	switch {
	case q != nil:
		s.starter.settle(i, watch.StartDone, nil)
		s.log.Info("query started", "query", q.Name(), "id", q.ID(), "run_id", q.RunID())
		if err != nil {
			s.log.Warn("spark's own word of the start cannot be read; the start is inferred", "query", q.Name(), "err", err)
		}
	case ended(ctx), leftOpen(err):
		return err
	case s.runs(ctx, s.cfg.Queries[i].Name): // somebody else was faster
		s.leaveAlone(i)
	default:
		s.refused(i, err)
	}
	return nil
}

func (s *source) runs(ctx context.Context, name string) bool {
	active, err := s.session.Active(ctx)
	return err == nil && named(active, name)
}

func (s *source) leaveAlone(i int) {
	s.starter.settle(i, watch.StartRunning, nil)
	s.log.Info("query runs already and is left alone", "query", s.cfg.Queries[i].Name)
}

func (s *source) refused(i int, err error) {
	s.starter.settle(i, watch.StartFailed, err)
	s.log.Error("query was not started; it is tried again in a new session, or when the bridge is started again",
		"query", s.cfg.Queries[i].Name, "err", redact.Text(err.Error()))
}

// leftOpen says that an answer leaves open what became of a query: it is about the session,
// the token, or an operation that Spark has forgotten while it could not be reached.
func leftOpen(err error) bool {
	for _, about := range []error{
		connect.ErrSessionNotFound, connect.ErrSessionChanged, connect.ErrSessionClosed, connect.ErrUnauthenticated,
		connect.ErrOperationNotFound, connect.ErrOperationAbandoned, connect.ErrPositionLost,
	} {
		if errors.Is(err, about) {
			return true
		}
	}
	return false
}
