package listener

import (
	"context"
	"errors"
	"time"

	"github.com/tidwall/gjson"
)

// recentKept is how many documents Spark keeps of a run: one less than its setting
// spark.sql.streaming.numRecentProgressUpdates says.
const recentKept = 99

// tooLargePause is for how long a run is left alone of which Spark tells more than can
// be received. That changes only with new batches.
const tooLargePause = time.Minute

// account is what Spark still tells of a run.
type account struct {
	events []Event // in Spark's order
	// whole says that nothing was dropped before the first of them.
	whole bool
	// answered is false where Spark did not answer: the matter stays open.
	answered bool
	// tooLarge says that the answer is more than can be received.
	tooLarge bool
}

// interest says what makes the newest document of a run worth asking for the rest.
type interest int

const (
	inBatches interest = iota // a batch that was not admitted
	inAll                     // or an idle time that was not
)

// recount asks for what Spark still tells of a run, if its newest document says
// that something is missing here.
func (f *Feed) recount(ctx context.Context, q Query, origin Origin, what interest) account {
	l := f.Admission.life(q.RunID)
	switch {
	case !f.answering():
		return account{}
	case time.Now().Before(l.askAgain):
		return account{tooLarge: true}
	}
	asking, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	documents, err := f.documents(asking, q, what)
	told := account{answered: f.heard(ctx, err), whole: len(documents) < recentKept}
	if told.tooLarge = errors.Is(err, ErrTooLarge); told.tooLarge {
		l.askAgain = time.Now().Add(tooLargePause)
	}
	for _, document := range documents {
		e, err := FromRecentProgress(document, origin)
		if err != nil {
			f.Log.Warn("a progress document of spark's cannot be read", "query_id", q.ID, "run_id", q.RunID, "err", err)
			continue
		}
		if e.RunID == q.RunID {
			told.events = append(told.events, e)
		}
	}
	return told
}

// documents are all documents of a run, none where the newest tells nothing new.
func (f *Feed) documents(ctx context.Context, q Query, what interest) ([][]byte, error) {
	last, err := f.Spark.LastProgress(ctx, q)
	if err != nil || last == nil || !f.Admission.behind(q.RunID, last, what) {
		return nil, err
	}
	return f.Spark.RecentProgress(ctx, q)
}

// heard tells an answer from none, and notes when there was none. That an answer
// cannot be received says nothing about the next question.
func (f *Feed) heard(ctx context.Context, err error) bool {
	switch {
	case err == nil, errors.Is(err, ErrNoQuery):
		return true
	case !errors.Is(err, ErrTooLarge):
		f.unanswered(ctx, err)
	}
	return false
}

// behind says whether the newest document of a run tells of something that was not
// admitted. An idle entry carries the id of the batch to come.
func (a *Admission) behind(runID string, last []byte, what interest) bool {
	if len(a.marks.Open(runID)) > 0 {
		return true
	}
	e, err := FromRecentProgress(last, OriginPoll)
	if err != nil {
		return true // let the whole list tell
	}
	mark := a.marks.Batch(runID)
	if e.Kind == KindProgress {
		return e.BatchID > mark
	}
	if gjson.GetBytes(last, "batchId").Int()-1 > mark {
		return true // where the run has had no batch, the list tells whether it began with this one
	}
	idle, ok := a.marks.LastIdle(runID)
	return what == inAll && (!ok || e.Time.After(idle))
}

// relive admits what Spark told of a run, as far as it lies before the event that
// made us ask (nil: all of it), and gives up what is still missing then.
func (a *Admission) relive(runID string, told account, before *Event) []Event {
	var out []Event
	batches := !told.whole // whether the run's first batch has passed
	for _, e := range told.events {
		if before != nil && !precedes(e, before) {
			break
		}
		if batches = batches || e.Kind == KindProgress; !batches || e.Kind == KindIdle && e.Time.Before(a.life(runID).First) {
			continue // idle before the first batch; the bus never sends these
		}
		out = append(out, a.admitOne(e, told.answered)...)
	}
	if told.answered {
		out = append(out, a.giveUp(runID)...)
	}
	return out
}

// precedes orders a document of a run and an event of the bus.
func precedes(e Event, event *Event) bool {
	switch {
	case event.Kind == KindTerminated:
		return true
	case e.Kind == KindProgress && event.Kind == KindProgress:
		return e.BatchID < event.BatchID
	default:
		return e.Time.Before(event.Time)
	}
}

// giveUp names the batches that Spark has no more.
func (a *Admission) giveUp(runID string) []Event {
	a.marks.Begin(runID)
	var out []Event
	for _, missing := range a.marks.Open(runID) {
		a.marks.Gap(runID, missing)
		out = append(out, a.gap(runID, missing))
	}
	return out
}
