package bridge

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"sparkbridge/connect/connecttest"
)

const (
	// keptDocuments is how many progress documents Spark keeps of a run.
	keptDocuments = 99
	// keptRuns is for how long Spark answers about a run that has ended.
	keptRuns = time.Hour
)

// job plays a Spark job: queries that run, rest, fail and are started again, and the
// listener bus that tells of it. What it did is the truth that a journal is held
// against.
type job struct {
	spark *connecttest.Server

	mu        sync.Mutex
	rng       *rand.Rand
	session   *connecttest.Session // nil while the job has none
	sessionID string
	queries   []*played
	runs      []*run
	swallow   int // so many of the next events the driver drops
	swell     int // so many of the next batches are too large for one message
	// held is when each operation was last seen to hold the bus.
	held map[string]time.Time
}

// played is a query of the job. Its batch ids go on over its runs.
type played struct {
	id, name string
	every    time.Duration
	batch    int64 // next one
	rests    int   // so many triggers find no data
	once     bool  // it is not started again
	run      *run
	due      time.Time
}

// run is one run of a query, and what became of it.
type run struct {
	id           string
	query        *played
	session      string
	began, ended time.Time
	exception    string
	batches      []*batch
	idles        []*rest
	recent       []entry
	full         bool // Spark has kept as many documents as it does
	told         bool // the driver put the end on the bus
	terminated   connecttest.Emitted
	driverDied   bool
	closed       bool      // its session was closed
	forgotten    time.Time // since when Spark does not answer about it
}

// batch is a batch that ran.
type batch struct {
	id      int64
	at      time.Time
	payload string
	large   bool
	emitted connecttest.Emitted
	dropped bool      // by the driver, on the way to the bus
	trimmed time.Time // since when recent_progress lacks it
}

// rest is a trigger without data.
type rest struct {
	at      time.Time
	payload string
	emitted connecttest.Emitted
	dropped bool
}

// entry is one document of recent_progress.
type entry struct {
	json  string
	batch *batch // nil for an idle entry
}

func newJob(spark *connecttest.Server, rng *rand.Rand) *job {
	j := &job{spark: spark, rng: rng, sessionID: sessionID, held: map[string]time.Time{}}
	for i := range 2 + rng.IntN(2) {
		q := &played{id: fmt.Sprintf("q%d", i), name: fmt.Sprintf("orders-%d", i), every: pick(rng, 3*time.Second, 8*time.Second, 20*time.Second, time.Minute)}
		if i == 1 {
			q.name = ""
		}
		q.batch = int64(rng.IntN(2) * rng.IntN(40)) // half of them go on from a checkpoint
		j.queries = append(j.queries, q)
	}
	return j
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// work lets the job run until done is closed.
func (j *job) work(done <-chan struct{}) {
	for {
		j.mu.Lock()
		next := j.tick()
		j.mu.Unlock()
		select {
		case <-done:
			return
		case <-time.After(time.Until(next)):
		}
	}
}

// tick lets every query that is due do something, and returns when the next one is.
func (j *job) tick() time.Time {
	now := time.Now()
	next := now.Add(5 * time.Second)
	if j.session != nil {
		j.forget(now)
		if op, _ := j.session.Holder(); op != "" {
			j.held[op] = now
		}
		for _, q := range j.queries {
			if !q.due.After(now) {
				j.act(q)
			}
			if q.due.Before(next) {
				next = q.due
			}
		}
	}
	return next
}

// act is what a query does at one moment.
func (j *job) act(q *played) {
	q.due = time.Now().Add(q.every/2 + rand64(j.rng, q.every))
	switch {
	case q.run == nil && q.once:
		q.due = time.Now().Add(24 * time.Hour)
	case q.run == nil:
		j.start(q)
	case j.rng.IntN(40) == 0:
		j.end(q, j.rng.IntN(2) == 0)
		q.due = time.Now().Add(rand64(j.rng, 3*time.Minute))
	case q.rests > 0:
		q.rests--
		j.idle(q)
		q.due = time.Now().Add(10 * time.Second)
	default:
		j.batch(q)
		if j.rng.IntN(8) == 0 {
			q.rests = 1 + j.rng.IntN(4)
			q.due = time.Now().Add(10 * time.Second)
		}
	}
}

func rand64(rng *rand.Rand, below time.Duration) time.Duration {
	return time.Duration(rng.Int64N(int64(below)))
}

// start begins a run. Some triggers before its first batch may find nothing: Spark
// keeps a document of them, and tells them to nobody.
func (j *job) start(q *played) {
	n := 1
	for _, r := range j.runs {
		if r.query == q {
			n++
		}
	}
	q.run = &run{id: fmt.Sprintf("%s-r%d", q.id, n), query: q, session: j.sessionID, began: time.Now()}
	j.runs = append(j.runs, q.run)
	for range j.rng.IntN(3) * j.rng.IntN(2) {
		q.run.keep(entry{json: q.document(time.Now().Add(-time.Second), true, false)})
	}
	j.show()
}

// batch runs a batch: Spark keeps its document and then tells it.
func (j *job) batch(q *played) {
	large := j.swell > 0
	if large {
		j.swell--
	}
	b := &batch{id: q.batch, at: time.Now(), large: large, payload: q.progress(time.Now(), large)}
	q.run.batches = append(q.run.batches, b)
	q.run.keep(entry{json: q.document(b.at, false, large), batch: b})
	q.batch++
	j.show()
	if b.dropped = j.swallows(); !b.dropped {
		b.emitted = j.session.Progress(b.payload)
	}
}

func (j *job) idle(q *played) {
	r := &rest{at: time.Now().Truncate(time.Millisecond), payload: fmt.Sprintf(`{"id":"%s","runId":"%s","timestamp":"%s"}`, q.id, q.run.id, stamp(time.Now()))}
	q.run.keep(entry{json: q.document(r.at, true, false)})
	j.show()
	if len(q.run.batches) == 0 {
		return
	}
	q.run.idles = append(q.run.idles, r)
	if r.dropped = j.swallows(); !r.dropped {
		r.emitted = j.session.Idle(r.payload)
	}
}

// end ends a run: it is inactive first, and told then.
func (j *job) end(q *played, fails bool) {
	r := q.run
	q.run, q.rests, r.ended = nil, 0, time.Now()
	exception, class := "null", "null"
	if fails {
		r.exception = "[STREAM_FAILED] " + r.id + " met a bad record"
		exception, class = `"`+r.exception+`"`, `"BAD_RECORD"`
	}
	j.show()
	if !j.swallows() {
		r.told = true
		r.terminated = j.session.Terminated(fmt.Sprintf(`{"id":"%s","runId":"%s","exception":%s,"errorClassOnException":%s}`, q.id, r.id, exception, class))
	}
}
