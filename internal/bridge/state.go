package bridge

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"sparkbridge/listener"
)

// busState is where a source stands with its session's listener bus.
type busState string

const (
	busWaiting  busState = "waiting"  // for the server, the session or a query
	busAttached busState = "attached" // events flow
	busLost     busState = "lost"     // it was ours and is to be opened anew
	busTaken    busState = "taken"    // another client holds it
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

// event is the change as an event of the journal, which gives it its id.
func (c change) event(at time.Time) (listener.Event, error) {
	c.Timestamp = at.Format(time.RFC3339Nano)
	payload, err := json.Marshal(c)
	if err != nil {
		return listener.Event{}, fmt.Errorf("encode bus event: %w", err)
	}
	return listener.Event{
		Kind: listener.BusState, Origin: listener.OriginBridge, Source: c.Source,
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
