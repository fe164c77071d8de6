package servers

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// LoggedEvent is a streaming query's event as Spark wrote it to its event log, which makes it
// an independent record of what the session's listener bus should have carried.
type LoggedEvent struct {
	Kind      string // started, progress, idle or terminated
	ID        string // query id
	RunID     string
	Name      string // empty where the query has none, and on idle and terminated events
	BatchID   int64  // of progress events, else -1
	Timestamp string // as Spark wrote it; empty on terminated events
	JSON      json.RawMessage
}

var loggedKinds = map[string]string{
	"QueryStartedEvent":    "started",
	"QueryProgressEvent":   "progress",
	"QueryIdleEvent":       "idle",
	"QueryTerminatedEvent": "terminated",
}

// EventLogEvents reads the events of all queries of all sessions since the first start, in the
// order in which Spark wrote them. It may be called while the server runs and after its end. A
// progress event stands in the log in the dialect of recent_progress: offsets are strings and
// the totals are missing.
func (s *Spark) EventLogEvents() ([]LoggedEvent, error) {
	logs, err := s.eventLogs()
	if err != nil {
		return nil, fmt.Errorf("find event log: %w", err)
	}
	var events []LoggedEvent
	for _, path := range logs {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("read event log: %w", err)
		}
		found, err := readEventLog(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, fmt.Errorf("read event log %s: %w", path, err)
		}
		events = append(events, found...)
	}
	return events, nil
}

// eventLogs lists the log of each run of the server, oldest first: Spark names a log after the
// time of the start, and takes off the suffix when it stops in good order.
func (s *Spark) eventLogs() ([]string, error) {
	entries, err := os.ReadDir(s.in("events"))
	if err != nil {
		return nil, err
	}
	var logs []string
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), ".") { // checksums
			logs = append(logs, filepath.Join(s.in("events"), entry.Name()))
		}
	}
	slices.Sort(logs)
	return logs, nil
}

// readEventLog leaves out a last line that is not complete yet.
func readEventLog(log io.Reader) ([]LoggedEvent, error) {
	var events []LoggedEvent
	lines := bufio.NewReaderSize(log, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, nil
		}
		if err != nil {
			return nil, err
		}
		event, ok, err := parseLogged(line)
		if err != nil {
			return nil, err
		}
		if ok {
			events = append(events, event)
		}
	}
}

var loggedPrefix = []byte(`{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$`)

func parseLogged(line []byte) (LoggedEvent, bool, error) {
	if !bytes.HasPrefix(line, loggedPrefix) {
		return LoggedEvent{}, false, nil
	}
	type fields struct {
		ID        string `json:"id"`
		RunID     string `json:"runId"`
		Name      string `json:"name"`
		Timestamp string `json:"timestamp"`
		BatchID   *int64 `json:"batchId"`
	}
	var whole struct {
		Event string
		fields
		Progress *fields `json:"progress"`
	}
	if err := json.Unmarshal(line, &whole); err != nil {
		return LoggedEvent{}, false, fmt.Errorf("decode %.80s…: %w", line, err)
	}
	_, class, _ := strings.Cut(whole.Event, "$")
	kind, known := loggedKinds[class]
	if !known {
		return LoggedEvent{}, false, nil
	}
	facts := whole.fields
	if whole.Progress != nil {
		facts = *whole.Progress
	}
	event := LoggedEvent{Kind: kind, ID: facts.ID, RunID: facts.RunID, Name: facts.Name, BatchID: -1,
		Timestamp: facts.Timestamp, JSON: bytes.TrimSpace(line)}
	if facts.BatchID != nil {
		event.BatchID = *facts.BatchID
	}
	return event, true, nil
}
