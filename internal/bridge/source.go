package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks"
)

const (
	// farewell bounds how long a stopping source speaks with Spark.
	farewell = 6 * time.Second
	// lastWrite bounds the write to the journal that is under way at the end.
	lastWrite = 2 * time.Second
	// maxPayload is what one event may take in the journal; longer texts are cut.
	maxPayload = 60 << 20
)

// source follows one session: it waits for it, holds its listener bus, and brings
// what the bus carries into the journal.
type source struct {
	cfg       configs.Source
	session   *connect.Session
	journal   *journal.Journal
	memory    memory
	admission *listener.Admission
	log       *slog.Logger

	// now is the state that was told last.
	now change
	// met says that the server has answered once.
	met bool
	// taken counts the openings in a row that found the bus taken.
	taken int
}

// openSources makes the sources and lets each remember what it knew.
func openSources(ctx context.Context, configured []configs.Source, client *connect.Client, j *journal.Journal, log *slog.Logger) ([]*source, error) {
	var sources []*source
	for _, cfg := range configured {
		remote, err := cfg.ParsedRemote()
		if err != nil {
			return nil, usage(fmt.Errorf("source %s: %w", cfg.Name, err))
		}
		session, err := client.Session(remote)
		if err != nil {
			return nil, usage(fmt.Errorf("source %s: %w", cfg.Name, err))
		}
		s := &source{
			cfg: cfg, session: session, journal: j, memory: memory{j, cfg.Name},
			admission: listener.NewAdmission(listener.Session{Source: cfg.Name, UserID: session.UserID(), SessionID: session.ID()}),
			log:       log.With("source", cfg.Name),
		}
		if err := s.memory.recall(ctx, s.admission); err != nil {
			return nil, broken(err)
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// run follows the session until ctx ends or the session is finished for ever,
// which is an error.
func (s *source) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, s.session.Close()) }()
	for {
		bus, err := s.open(ctx)
		if err == nil {
			err = s.attend(ctx, bus)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err := s.recover(ctx, err); err != nil {
			return err
		}
	}
}

// open waits until the session is there to be listened to, and opens its bus.
func (s *source) open(ctx context.Context) (*connect.Bus, error) {
	if err := s.awaitSession(ctx); err != nil {
		return nil, err
	}
	if err := s.awaitQuery(ctx); err != nil {
		return nil, err
	}
	return s.session.OpenBus(ctx, connect.BusOptions{
		Store: s.memory, Keep: s.cfg.OnStop == configs.OnStopKeep, Log: s.log,
	})
}

// awaitSession waits for the server, and for the job to make its session.
func (s *source) awaitSession(ctx context.Context) error {
	if !s.met {
		s.tell(ctx, busWaiting, "for the server "+s.address())
	}
	for {
		err := s.session.Probe(ctx)
		switch {
		case err == nil:
			s.met = true
			return nil
		case errors.Is(err, connect.ErrSessionChanged):
			s.session.Forget()
		case !errors.Is(err, connect.ErrSessionNotFound):
			return err
		case s.cfg.CreateSession:
			return s.session.Create(ctx)
		default:
			s.met = true
			s.session.Forget()
			s.tell(ctx, busWaiting, "for the session: the server does not have it yet; the job makes it when it connects with this user_id and session_id")
			if err := pause(ctx, s.cfg.PollInterval); err != nil {
				return err
			}
		}
	}
}

// awaitQuery waits for the session's first query, so that the job's own listeners
// can be added before ours; unless the bus is ours already.
func (s *source) awaitQuery(ctx context.Context) error {
	if s.cfg.Attach == configs.AttachAtOnce || s.cfg.CreateSession {
		return nil
	}
	if ours, err := s.memory.holds(s.session); ours || err != nil {
		return err
	}
	for {
		queries, err := s.session.Active(ctx)
		if err != nil || len(queries) > 0 {
			return err
		}
		s.tell(ctx, busWaiting, "for a query: the session has none (attach: first_query)")
		if err := pause(ctx, s.cfg.PollInterval); err != nil {
			return err
		}
	}
}

// attend carries what the open bus brings, until it is over or ctx ends; then it
// lets go of the bus as configured.
func (s *source) attend(ctx context.Context, bus *connect.Bus) error {
	s.taken = 0
	s.now.OperationID = bus.OperationID()
	s.tell(ctx, busAttached, "events flow")
	feed := &listener.Feed{
		Stream: bus, Asker: s.session, Admission: s.admission, Deliver: s.commit,
		AskEvery: s.cfg.PollInterval, Log: s.log,
	}
	err := feed.Run(ctx)
	if ctx.Err() != nil {
		err = s.leave(ctx, feed)
	}
	return errors.Join(err, bus.Close())
}

// leave ends the bus, or keeps it for the next process.
func (s *source) leave(ctx context.Context, feed *listener.Feed) error {
	if s.cfg.OnStop == configs.OnStopKeep {
		s.log.Info("the bus is kept for a restart", "within", "5m")
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := feed.Drain(ctx); err != nil {
		s.log.Warn("the bus was not freed; spark frees it when it has seen no client for five minutes", "err", err)
		return err
	}
	s.tell(ctx, busClosed, "the bridge stops")
	return nil
}

// commit makes events durable. It does not give up while ctx lasts: as long as the
// journal cannot be written nothing is read, and Spark keeps the events. A write
// that is under way when ctx ends is brought to its end.
func (s *source) commit(ctx context.Context, events []listener.Event) error {
	ctx, cancel := outlive(ctx, lastWrite)
	defer cancel()
	records := make([][]byte, len(events))
	for i, e := range events {
		records[i] = listener.EncodeRecord(sinks.Fit(e, maxPayload, func(e *listener.Event) int { return len(e.Payload) }))
	}
	for wait := newPatience(100*time.Millisecond, 5*time.Second); ; {
		_, err := s.journal.Append(ctx, records...)
		if err == nil {
			wait.over(s.log)
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("append to journal: %w", err)
		}
		wait.failed(s.log, err)
		if err := pause(ctx, wait.next()); err != nil {
			return fmt.Errorf("append to journal: %w", err)
		}
	}
}

// tell notes where the source stands: in the log and as an event, if it is news.
func (s *source) tell(ctx context.Context, state busState, reason string) {
	if s.now.State == state && s.now.Reason == reason {
		return
	}
	c := s.now
	c.Source, c.UserID, c.SessionID = s.cfg.Name, s.session.UserID(), s.session.ID()
	c.Previous, c.State, c.Reason = s.now.State, state, reason
	s.now = c
	s.log.Log(ctx, c.level(), "bus", "state", state, "reason", reason)
	e, err := c.event(time.Now().UTC())
	if err == nil {
		err = s.commit(ctx, []listener.Event{e})
	}
	if err != nil && ctx.Err() == nil {
		s.log.Error("the change of the bus is not in the journal", "err", err)
	}
}

func (s *source) address() string {
	remote, err := s.cfg.ParsedRemote()
	if err != nil {
		return s.cfg.Remote.String()
	}
	return remote.Address()
}
