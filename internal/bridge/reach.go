package bridge

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sparkbridge/listener"
)

// keptByDefault is how many progress documents Spark keeps of a run: one less than
// spark.sql.streaming.numRecentProgressUpdates, which is 100 unless set.
const keptByDefault = 99

// reach is how far back Spark can tell of a run.
type reach struct {
	documents int           // that it has now
	idle      bool          // some of them are of triggers that had nothing to do
	every     time.Duration // from one to the next, as a rule
}

// measure reads the times of the documents that Spark keeps of a run, oldest first.
func measure(runID string, documents [][]byte) reach {
	var r reach
	var times []time.Time
	for _, document := range documents {
		e, err := listener.FromRecentProgress(document, listener.OriginPoll)
		if err != nil || e.RunID != runID {
			continue
		}
		times = append(times, e.Time)
		r.idle = r.idle || e.Kind == listener.KindIdle
	}
	r.documents, r.every = len(times), interval(times)
	return r
}

// interval is the time from one to the next: the mean or the median, whichever is
// less, so that a slow first batch or a long pause promises nobody too much.
func interval(times []time.Time) time.Duration {
	if len(times) < 2 {
		return 0
	}
	steps := make([]time.Duration, 0, len(times)-1)
	for i, at := range times[1:] {
		steps = append(steps, at.Sub(times[i]))
	}
	slices.Sort(steps)
	mean := times[len(times)-1].Sub(times[0]) / time.Duration(len(steps))
	if median := steps[(len(steps)-1)/2]; median > 0 {
		return min(mean, median)
	}
	return mean
}

// known says that there is enough to tell how fast documents come.
func (r reach) known() bool { return r.every > 0 }

// kept is how many documents Spark keeps; before it has that many, its default.
func (r reach) kept() int { return max(r.documents, keptByDefault) }

// away is how long it takes until all documents that Spark keeps are new ones.
func (r reach) away() time.Duration { return time.Duration(r.kept()) * r.every }

// String says how long the bridge may be away, or why that is not known.
func (r reach) String() string {
	switch {
	case r.documents == 0:
		return "no batch yet, so for how long the bridge may be away is not known (with a continuous trigger Spark never tells of any)"
	case !r.known():
		return "one batch so far, so for how long the bridge may be away is not known yet"
	}
	what, kept := "a batch", fmt.Sprintf("%d kept", r.documents)
	if r.idle {
		what = "a batch or an idle trigger"
	}
	if r.documents < keptByDefault {
		kept = fmt.Sprintf("%d kept so far (%d unless spark.sql.streaming.numRecentProgressUpdates says otherwise)", r.documents, keptByDefault)
	}
	every := fmt.Sprintf("%.1f s", r.every.Seconds())
	if r.every >= time.Minute {
		every = roughly(r.every)
	}
	return fmt.Sprintf("%s every %s, %s: the bridge may be away for about %s before batches are out of reach", what, every, kept, roughly(r.away()))
}

// roughly writes a duration as exactly as people care for.
func roughly(d time.Duration) string {
	precision := time.Millisecond
	switch {
	case d >= time.Hour:
		precision = time.Minute
	case d >= 10*time.Second:
		precision = time.Second
	case d >= time.Second:
		precision = 100 * time.Millisecond
	}
	text := d.Round(precision).String()
	if strings.HasSuffix(text, "m0s") {
		return strings.TrimSuffix(text, "0s")
	}
	return text
}
