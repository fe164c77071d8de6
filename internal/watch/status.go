package watch

import "time"

// Status is how the parts of the bridge are, as they were at one moment. In JSON it
// is the answer of the API.
type Status struct {
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Now     time.Time `json:"now"`
	Sources []Source  `json:"sources"`
	Sinks   []Sink    `json:"sinks"`
	Journal Journal   `json:"journal"`
	Queries []Query   `json:"queries"`
}

// Source is one configured session.
type Source struct {
	Name string `json:"name"`
	// State is waiting, attached, lost, taken, polling or closed; empty before the first.
	State    string    `json:"state"`
	Reason   string    `json:"reason"`
	Since    time.Time `json:"since,omitzero"`
	Required bool      `json:"required"`

	UserID    string `json:"userId"`
	SessionID string `json:"sessionId"`
	// Duplicates counts the repeats on the bus that were dropped.
	Duplicates uint64 `json:"duplicates"`
	// Reattaches counts how often reading the bus went on where it had stopped, by why
	// it had: see the Stops.
	Reattaches map[Stop]uint64 `json:"reattaches"`
	// Starts are the queries that the bridge is to start in the session.
	Starts []Start `json:"starts,omitempty"`
}

// Start is what became of a query that was to be started.
type Start struct {
	Name  string     `json:"name"`
	State StartState `json:"state"`
	Error string     `json:"error,omitempty"` // why it was not started
}

// StartState says how far a start is. What becomes of the query later is told by its events.
type StartState string

// The states of a start.
const (
	StartWaiting StartState = "waiting" // for the bus, or for Spark's answer
	StartDone    StartState = "started"
	StartRunning StartState = "running" // it ran already, and was left alone
	StartFailed  StartState = "failed"
)

// Stop is why reading the bus stopped, without a loss.
type Stop string

// The stops.
const (
	StopEnd     Stop = "end"     // Spark ended the stream, as it does every two minutes
	StopBreak   Stop = "break"   // the connection broke, or was silent
	StopRestart Stop = "restart" // the bridge, or what reads the bus in it, began anew
)

// Stops are all of them.
var Stops = []Stop{StopEnd, StopBreak, StopRestart}

// Sink is one configured destination.
type Sink struct {
	Name string `json:"name"`
	Kind string `json:"kind"` // nats, kafka or webhook
	// Delivered counts the events acknowledged since the start.
	Delivered uint64 `json:"delivered"`
	// Buried counts the events that became dead letters since the start, DeadLetters
	// those that are kept.
	Buried      uint64 `json:"buried"`
	DeadLetters int    `json:"deadLetters"`
	// Lost counts the events that retention deleted before the sink had them, since the
	// start.
	Lost uint64 `json:"lost"`
	// Ambiguous counts the events sent to Kafka of which no broker has said whether it
	// has them; nil for other kinds.
	Ambiguous *uint64 `json:"ambiguous,omitempty"`
	// Pending is how many events of the journal are behind its cursor and not yet
	// settled: neither delivered, nor unwanted, nor a dead letter. Oldest is when the
	// first of them was recorded, zero if there is none.
	Pending uint64    `json:"pending"`
	Oldest  time.Time `json:"oldest,omitzero"`
	// Error is the last failure, empty while deliveries succeed.
	Error  string    `json:"error"`
	Since  time.Time `json:"since,omitzero"`
	Failed int       `json:"failed"` // times in a row
	// Stopped says that the destination wants no more events: the sink tries nothing
	// until it is told to.
	Stopped bool `json:"stopped"`

	Failures map[Reason]uint64 `json:"failures"`
	Took     Durations         `json:"-"`
}

// Journal is the durable log.
type Journal struct {
	First    uint64    `json:"first"`
	Next     uint64    `json:"next"`
	Bytes    int64     `json:"bytes"`
	Segments int       `json:"segments"`
	Oldest   time.Time `json:"oldest,omitzero"`
	// Error is why it cannot be written, empty while it can.
	Error    string    `json:"error"`
	Failing  time.Time `json:"failing,omitzero"`
	Writes   Durations `json:"-"`
	Failures uint64    `json:"failures"`
}
