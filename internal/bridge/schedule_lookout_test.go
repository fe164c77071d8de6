package bridge

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"sparkbridge/connect"
	"sparkbridge/connect/connecttest"
	"sparkbridge/connect/sparkpb"
	"sparkbridge/internal/journal"
	"sparkbridge/listener"
)

// lookout looks on while a schedule runs, and collects what is wrong.
type lookout struct {
	job *job

	mu       sync.Mutex
	problems []string
	kept     map[string]bool // ids of the events in the journal, those that a gap stands for among them
	read     *life           // whose journal was read
	until    uint64          // up to where
	checked  map[string]int  // of each operation, how many of its events were released rightly
}

func newLookout(j *job) *lookout { return &lookout{job: j, checked: map[string]int{}} }

func (w *lookout) report(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// asked checks a release as it is sent: the position that it names, or a later one,
// is the stored resume point, and everything up to it is in the journal.
func (w *lookout) asked(l *life, in any) {
	release, ok := in.(*sparkpb.ReleaseExecuteRequest)
	if !ok || release.GetReleaseUntil() == nil {
		return
	}
	blob, _, err := l.journal.State().Resume("etl")
	var point connect.ResumePoint
	if err != nil || json.Unmarshal(blob, &point) != nil {
		return // it is dying
	}
	op := release.GetOperationId()
	emitted := w.emitted(op)
	released := placeOf(emitted, release.GetReleaseUntil().GetResponseId())
	if stored := placeOf(emitted, point.LastResponseID); point.OperationID == op && stored < released {
		w.report("released up to event %d of operation %s, but stored is %d", released, op, stored)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.catchUp(l); err != nil {
		return // it is dying
	}
	for ; w.checked[op] <= released; w.checked[op]++ {
		if id := eventID(emitted[w.checked[op]]); !w.kept[id] && !w.overtaken(id) {
			w.problems = append(w.problems, fmt.Sprintf("released %s, which is not in the journal", id))
		}
	}
}

// overtaken says that a run had its end inferred while the stream was stuck for longer
// than the grace: what Spark told of it then may lie behind an idle time on the bus, whose
// document it had dropped.
func (w *lookout) overtaken(id string) bool {
	runID, _, idle := strings.Cut(id, ":idle:")
	return idle && w.kept[runID+":terminated:inferred"]
}

// catchUp reads what has come to the journal. The caller holds mu.
func (w *lookout) catchUp(l *life) error {
	if w.read != l {
		w.read, w.until, w.kept = l, 1, map[string]bool{}
	}
	events, err := readJournal(l.journal, w.until)
	if err != nil {
		return err
	}
	for _, e := range events {
		w.kept[e.ID] = true
		if e.Kind == listener.KindGap {
			from, to := gapOf(e)
			for b := from; b <= to; b++ {
				w.kept[fmt.Sprintf("%s:progress:%d", e.RunID, b)] = true
			}
		}
	}
	w.until += uint64(len(events))
	return nil
}

// gapOf is which batches a gap event gives up.
func gapOf(e listener.Event) (from, to int64) {
	f := gjson.GetManyBytes(e.Payload, "fromBatchId", "toBatchId")
	return f[0].Int(), f[1].Int()
}

// readJournal reads the events from a sequence on.
func readJournal(j *journal.Journal, from uint64) ([]listener.Event, error) {
	_, next := j.Bounds()
	r, err := j.NewReader(from)
	if err != nil || from == next {
		return nil, err
	}
	defer func() { _ = r.Close() }() // it returns nil
	var all []listener.Event
	for from+uint64(len(all)) < next {
		events, err := (tape{r}).Next(noContext, 256, 1<<20)
		if err != nil {
			return nil, err
		}
		all = append(all, events...)
	}
	return all, nil
}

// eventID is the id that an event of the bus should have, read from its own JSON.
func eventID(e connecttest.Emitted) string {
	doc := gjson.Parse(e.JSON)
	runID := doc.Get("runId").Str
	switch {
	case doc.Get("progress").Exists():
		return fmt.Sprintf("%s:progress:%d", doc.Get("progress.runId").Str, doc.Get("progress.batchId").Int())
	case doc.Get("timestamp").Exists():
		return fmt.Sprintf("%s:idle:%d", runID, doc.Get("timestamp").Time().UnixMilli())
	default:
		return runID + ":terminated"
	}
}

// emitted is what went over one operation, in order.
func (w *lookout) emitted(operation string) (list []connecttest.Emitted) {
	w.job.mu.Lock()
	s := w.job.session
	w.job.mu.Unlock()
	if s == nil {
		return nil
	}
	for _, e := range s.Emitted() {
		if e.OperationID == operation {
			list = append(list, e)
		}
	}
	return list
}

// placeOf is which of the events a response carried, -1 for none of them.
func placeOf(emitted []connecttest.Emitted, response string) int {
	for i, e := range emitted {
		if e.ResponseID == response {
			return i
		}
	}
	return -1
}

// calls checks what the bridge has asked Spark in all.
func (w *lookout) calls(spark *connecttest.Server, s *schedule) {
	tried := map[string]time.Time{}
	var last time.Time
	for _, call := range spark.Calls() {
		switch in := call.Request.(type) {
		case *sparkpb.ExecutePlanRequest:
			if len(in.GetTags()) > 0 {
				w.report("a request carries tags: %v", in.GetTags())
			}
			bus := in.GetPlan().GetCommand().GetStreamingQueryListenerBusCommand()
			if _, again := tried[in.GetOperationId()]; bus.GetAddListenerBusListener() && !again {
				tried[in.GetOperationId()] = call.At
				if !s.world.source.Takeover && s.foreign.cover(call.At) && s.foreign.cover(last) && !s.weather.cover(call.At) && call.At.Sub(last) < 50*time.Second {
					w.report("at %s the taken bus was tried again after %s", s.since(call.At), call.At.Sub(last))
				}
				last = call.At
			}
			if bus.GetRemoveListenerBusListener() && s.foreign.cover(call.At) && !s.weather.cover(call.At) && !s.world.source.Takeover {
				w.report("at %s the listener of another client was removed", s.since(call.At))
			}
		case *sparkpb.ReattachExecuteRequest, *sparkpb.ReleaseExecuteRequest, *sparkpb.FetchErrorDetailsRequest:
		default:
			w.report("the bridge called %s", strings.TrimPrefix(call.Method, "/spark.connect.SparkConnectService/"))
		}
	}
}

// busCall says what a call does to the bus, nothing where it does nothing.
func busCall(call connecttest.Call) string {
	switch in := call.Request.(type) {
	case *sparkpb.ExecutePlanRequest:
		bus := in.GetPlan().GetCommand().GetStreamingQueryListenerBusCommand()
		switch {
		case bus.GetAddListenerBusListener():
			return "ADD " + in.GetOperationId()
		case bus.GetRemoveListenerBusListener():
			return "REMOVE"
		}
	case *sparkpb.ReattachExecuteRequest:
		return "reattach " + in.GetOperationId() + " after " + in.GetLastResponseId()
	}
	return ""
}
