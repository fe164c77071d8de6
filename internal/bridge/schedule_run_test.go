package bridge

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"sparkbridge/connect/connecttest"
)

// forget is what Spark does an hour after the end of a run.
func (j *job) forget(now time.Time) {
	for _, r := range j.runs {
		if r.forgotten.IsZero() && !r.ended.IsZero() && now.Sub(r.ended) > keptRuns {
			r.forgotten = now
			j.show()
		}
	}
}

func (j *job) swallows() bool {
	if j.swallow == 0 {
		return false
	}
	j.swallow--
	return true
}

// keep adds a document, and lets go of the oldest.
func (r *run) keep(d entry) {
	r.recent = append(r.recent, d)
	r.full = r.full || len(r.recent) >= keptDocuments
	if len(r.recent) <= keptDocuments {
		return
	}
	if b := r.recent[0].batch; b != nil {
		b.trimmed = time.Now()
	}
	r.recent = r.recent[1:]
}

// show lets the server answer what is so.
func (j *job) show() {
	var queries []connecttest.Query
	for _, r := range j.runs {
		if !r.forgotten.IsZero() {
			continue
		}
		q := connecttest.Query{ID: r.query.id, RunID: r.id, Name: r.query.name, Stopped: !r.ended.IsZero(), Exception: r.exception}
		for _, d := range r.recent {
			q.Recent = append(q.Recent, d.json)
		}
		queries = append(queries, q)
	}
	j.session.SetQueries(queries...)
}

// connect makes the job's session, or another one where it was closed.
func (j *job) connect() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.session != nil {
		return nil
	}
	s, err := j.spark.CreateSession("u", j.sessionID)
	if err != nil {
		return err
	}
	j.session = s
	j.show()
	return nil
}

// die is the end of the driver: nothing is told any more.
func (j *job) die() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.session == nil {
		return
	}
	j.session = nil
	j.over(func(r *run) { r.driverDied = true })
}

// close is the job's own spark.stop(): it is told to who holds the bus, and the id of
// the session is spent.
func (j *job) close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.session == nil {
		return
	}
	j.session.Close()
	emitted := j.session.Emitted()
	j.session, j.sessionID = nil, uuid.NewSHA1(uuid.Nil, []byte(j.sessionID)).String()
	j.over(func(r *run) { r.closed, r.told = true, true })
	for _, e := range emitted {
		for _, r := range j.runs {
			if r.closed && e.JSON == fmt.Sprintf(`{"id":%q,"runId":%q,"exception":null,"errorClassOnException":null}`, r.query.id, r.id) {
				r.terminated = e
			}
		}
	}
}

// over ends all that runs, and lets nobody ask any more.
func (j *job) over(note func(*run)) {
	now := time.Now()
	for _, r := range j.runs {
		if r.ended.IsZero() {
			r.ended, r.query.run, r.query.rests = now, nil, 0
			r.query.due = now.Add(rand64(j.rng, time.Minute))
			note(r)
		}
		if r.forgotten.IsZero() {
			r.forgotten = now
		}
	}
}

// stamp prints an instant as Spark does.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// lose lets the driver drop the next events.
func (j *job) lose(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.swallow += 1 + n%6
}

// grow makes the next batches too large for one message.
func (j *job) grow(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.swell += n
}

// burst runs many batches of one query at once. Some queries then have nothing to do
// for as long as the schedule lasts, and do not say so: their trigger is long.
func (j *job) burst(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.session == nil {
		return
	}
	q := j.queries[n%len(j.queries)]
	if q.run == nil && !q.once {
		j.start(q)
	}
	for range n {
		if q.run == nil {
			return
		}
		j.batch(q)
		j.wait(20 * time.Millisecond)
	}
	if n%3 == 0 {
		q.due = time.Now().Add(24 * time.Hour)
	}
}

// wait lets time pass without the job. The caller holds mu.
func (j *job) wait(d time.Duration) {
	j.mu.Unlock()
	time.Sleep(d)
	j.mu.Lock()
}

// quick runs a query that ends soon after it was started.
func (j *job) quick(n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.session == nil {
		return
	}
	q := &played{id: fmt.Sprintf("quick%d", len(j.runs)), once: true, due: time.Now().Add(24 * time.Hour)}
	j.queries = append(j.queries, q)
	j.start(q)
	for range n % 4 {
		if j.wait(time.Duration(n) * 10 * time.Millisecond); q.run == nil {
			return
		}
		j.batch(q)
	}
	if j.wait(10 * time.Millisecond); q.run != nil {
		j.end(q, n%2 == 0)
	}
}

// busy says whether a query has run for a while.
func (j *job) busy() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.ContainsFunc(j.queries, func(q *played) bool { return q.run != nil && time.Since(q.run.began) > time.Minute })
}

// now is the session of the job, nil where it has none.
func (j *job) now() *connecttest.Session {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.session
}
