package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
)

// source follows the sessions of one job, one after the other: it waits for a
// session, holds its listener bus or polls it, and brings what it tells into the
// journal.
type source struct {
	cfg     configs.Source
	client  *connect.Client
	journal *journal.Journal
	memory  *memory
	states  *states
	log     *slog.Logger
	// room reports why the journal takes no events now.
	room func(context.Context) error
	// admission is made anew when its marks got ahead of the journal.
	admission atomic.Pointer[listener.Admission]

	starter *starter

	// reattaches counts how often the bus was read on.
	reattaches reattaches

	// session is the one that is followed now, and where it is.
	session *connect.Session
	where   place
	// met says that the server has answered once.
	met bool
	// taken counts the openings in a row that found the bus taken.
	taken int
	// detached says that the session was let go, since no query ran in it.
	detached bool
	// goneAt is when the operation was last found to be gone.
	goneAt time.Time
	// lostTo is the reason of gaps that the next bus reveals, empty for the usual.
	lostTo string
}

// openSources makes the sources and lets each remember what it knew.
func openSources(ctx context.Context, configured []configs.Source, client *connect.Client, j *journal.Journal, log *slog.Logger) ([]*source, error) {
	var sources []*source
	for _, cfg := range configured {
		log := log.With("source", cfg.Name)
		s := &source{
			cfg: cfg, client: client, journal: j, memory: &memory{journal: j, source: cfg.Name},
			states: &states{source: cfg.Name, journal: j, log: log}, log: log,
			room: func(context.Context) error { return nil }, starter: newStarter(cfg.Queries),
		}
		if err := s.remember(ctx); err != nil {
			return nil, broken(err)
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// remember makes the admission from what the journal knows.
func (s *source) remember(ctx context.Context) error {
	a := listener.NewAdmission(listener.Session{Source: s.cfg.Name})
	if err := s.memory.recall(ctx, a); err != nil {
		return err
	}
	if before := s.admission.Load(); before != nil {
		a.CountOn(before.Duplicates())
	}
	s.admission.Store(a)
	return nil
}

// run follows session after session until ctx ends, or there is none to go on with,
// which is an error.
func (s *source) run(ctx context.Context) error {
	last := ""
	for {
		where, err := s.next(ctx, last)
		if err != nil || ctx.Err() != nil {
			s.states.stop(ctx)
			return err
		}
		last = where.written
		err = s.followWhile(ctx, where)
		if ended(ctx) {
			s.states.stop(ctx)
			return nil
		}
		if err != nil && (s.cfg.RemoteFile == "" || isUsage(err)) {
			return err
		}
	}
}

// followWhile follows one session for as long as it is the one to follow.
func (s *source) followWhile(ctx context.Context, where place) (err error) {
	if s.session, err = s.client.Session(where.remote); err != nil {
		return usage(fmt.Errorf("source %s: %w", s.cfg.Name, err))
	}
	defer func() { err = errors.Join(err, s.session.Close()) }()
	s.where = where
	s.states.follow(s.session.UserID(), s.session.ID())
	s.admission.Load().Follow(s.named())
	s.taken, s.detached = 0, false
	s.starter.reset()

	following, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watch(following, where, stop)
	}()
	err = s.follow(following)
	if errors.Is(context.Cause(following), errMoved) {
		s.depart(ctx)
	}
	stop(nil)
	<-watched
	return err
}

func (s *source) named() listener.Session {
	return listener.Session{Source: s.cfg.Name, UserID: s.session.UserID(), SessionID: s.session.ID()}
}

// follow goes from state to state until ctx ends or the session is finished.
func (s *source) follow(ctx context.Context) error {
	for {
		err := s.turn(ctx)
		if ended(ctx) {
			return nil
		}
		if err := s.recover(ctx, err); err != nil {
			return err
		}
	}
}

// turn goes from the wait for the session to the end of its bus, or of polling.
func (s *source) turn(ctx context.Context) error {
	if s.admission.Load().Torn() {
		return listener.ErrNotKept
	}
	if err := s.awaitSession(ctx); err != nil {
		return err
	}
	if err := s.part(ctx); err != nil {
		return err
	}
	if s.cfg.Mode == configs.ModePoll {
		return s.poll(ctx, "mode: poll")
	}
	if err := s.awaitQuery(ctx); err != nil {
		return err
	}
	bus, err := s.open(ctx)
	if err != nil {
		return err
	}
	return s.attend(ctx, bus)
}

// feed is a feed of the session into the journal.
func (s *source) feed() *listener.Feed {
	return &listener.Feed{
		Spark: s.session, Admission: s.admission.Load(), Deliver: s.commit,
		AskEvery: s.cfg.PollInterval, DetachAfter: s.cfg.DetachWhenIdle, GapReason: s.lostTo, Log: s.log,
	}
}
