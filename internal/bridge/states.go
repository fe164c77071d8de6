package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sparkbridge/internal/journal"
	"sparkbridge/listener"
	"sparkbridge/sinks/redact"
)

// busState is where a source stands with its session's listener bus.
type busState string

const (
	busWaiting  busState = "waiting"  // for the server, the session or a query
	busAttached busState = "attached" // events flow
	busLost     busState = "lost"     // it was ours and is to be opened anew
	busTaken    busState = "taken"    // another client holds it
	busPolling  busState = "polling"  // the session is asked instead
	busClosed   busState = "closed"   // we let go of it, or the session is finished
)

// change is a change of that state, and the payload of the event that tells it.
type change struct {
	Source      string   `json:"source"`
	State       busState `json:"state"`
	Previous    busState `json:"previous,omitempty"`
	Reason      string   `json:"reason"`
	UserID      string   `json:"userId"`
	SessionID   string   `json:"sessionId"`
	OperationID string   `json:"operationId,omitempty"`
	Timestamp   string   `json:"timestamp"`
}

// states tells each change of one source's state once: in the log and as an event
// of the journal.
type states struct {
	source  string
	journal *journal.Journal
	log     *slog.Logger

	mu   sync.Mutex
	now  change
	kept bool // the journal has it
	// shown is the newest state, for whoever asks; nil before the first.
	shown atomic.Pointer[standing]
}

// standing is a state and since when it lasts.
type standing struct {
	change
	since time.Time
}

// show lets others see a state. It needs no journal, so that they see it too while
// that cannot be written.
func (s *states) show(c change) {
	now := &standing{c, time.Now()}
	if before := s.shown.Load(); before != nil && before.State == c.State {
		now.since = before.since
	}
	s.shown.Store(now)
}

// follow names the session that the states from now on are of.
func (s *states) follow(userID, sessionID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.UserID, s.now.SessionID, s.now.OperationID = userID, sessionID, ""
}

// hold names the operation that holds the bus.
func (s *states) hold(operationID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now.OperationID = operationID
}

// tell tells a state if it is news. A journal that cannot take the event does not
// hold it up: the log has it, and the journal gets it when the state is told again.
func (s *states) tell(ctx context.Context, state busState, reason string) {
	if news, err := s.record(ctx, state, reason); err != nil && news {
		s.log.Error("the change of the bus is not in the journal", "state", state, "err", err)
	}
}

// stop tells that a source which does not hold the bus is not followed any more. How one
// that holds it is left is told where that is done.
func (s *states) stop(ctx context.Context) {
	s.mu.Lock()
	now := s.now
	s.mu.Unlock()
	if now.SessionID != "" && now.State != busAttached && now.State != busClosed {
		s.tell(ctx, busClosed, "the bridge stops")
	}
}

// record tells a state if it is news or not in the journal yet, and reports whether
// it is news; without an error the journal has it.
func (s *states) record(ctx context.Context, state busState, reason string) (news bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if news = s.now.State != state || s.now.Reason != reason; news {
		s.now.Source, s.now.Previous, s.now.State, s.now.Reason = s.source, s.now.State, state, reason
		s.kept = false
		s.log.Log(ctx, s.now.level(), "bus", "state", state, "reason", redact.Text(reason))
		s.show(s.now)
	}
	if s.kept {
		return news, nil
	}
	e, err := s.now.event(time.Now().UTC())
	if err != nil {
		return news, err
	}
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	if _, err := s.journal.Append(writing, listener.EncodeRecord(e)); err != nil {
		return news, fmt.Errorf("append to journal: %w", err)
	}
	s.kept = true
	return news, nil
}

// event is the change as an event of the journal, which gives it its id.
func (c change) event(at time.Time) (listener.Event, error) {
	c.Timestamp = at.Format(time.RFC3339Nano)
	payload, err := json.Marshal(c)
	if err != nil {
		return listener.Event{}, fmt.Errorf("encode bus event: %w", err)
	}
	return listener.Event{
		Kind: listener.KindBus, Origin: listener.OriginBridge, Source: c.Source,
		UserID: c.UserID, SessionID: c.SessionID, BatchID: listener.NoBatch, Time: at, Payload: payload,
	}, nil
}

// level is how loud a state is: what needs somebody to act is a warning.
func (c change) level() slog.Level {
	switch c.State {
	case busLost, busTaken:
		return slog.LevelWarn
	default:
		return slog.LevelInfo
	}
}
