package nats

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

// route is what is known of the stream that takes a subject.
type route struct {
	// ordered says that messages which follow each other on this connection are
	// stored in that order or, from one of them on, not at all. That holds where
	// the server of this connection itself keeps the stream's only copy and makes
	// room by deleting old messages. Elsewhere a message can be lost or refused
	// and the next one taken: between two servers, at a change of the leader, or
	// when a full stream has room again. There, a query's next event waits for
	// the acknowledgement of the one before.
	ordered bool
	// limit is the largest message in bytes, 0 where the stream has no own limit.
	limit int
}

// maxRoutes bounds what is remembered: subjects are made from query names.
const maxRoutes = 4096

// errTooLarge is the API error code of a message above the stream's limit
// (JSStreamMessageExceedsMaximumErr).
const errTooLarge jetstream.ErrorCode = 10054

// minLimit is the least that an event is cut to without knowing the limit.
const minLimit = 2 << 10

// routes remembers what acknowledgements have taught. The zero value knows nothing.
type routes struct {
	bySubject map[string]route
	byStream  map[string]route
}

func (r *routes) ordered(subject string) bool { return r.bySubject[subject].ordered }

// forget keeps the limits and drops all trust in the order: something was
// refused or lost that was not expected to be.
func (r *routes) forget() {
	clear(r.byStream)
	for subject, known := range r.bySubject {
		r.bySubject[subject] = route{limit: known.limit}
	}
}

func (r *routes) set(subject string, known route) {
	if r.bySubject == nil || len(r.bySubject) >= maxRoutes {
		r.bySubject = make(map[string]route)
	}
	r.bySubject[subject] = known
}

// limit is the largest message that may go to subject.
func (p *session) limit(subject string) int {
	limit := int(p.conn.MaxPayload())
	if own := p.routes.bySubject[subject].limit; own > 0 {
		limit = min(limit, own)
	}
	return limit
}

// learn takes note that subject goes to stream, and asks what stream is like
// unless that is known. No answer means that nothing is taken for granted.
func (p *session) learn(ctx context.Context, subject, stream string) {
	known, found := p.routes.byStream[stream]
	if !found {
		known = p.ask(ctx, stream, subject)
		if p.routes.byStream == nil {
			p.routes.byStream = make(map[string]route)
		}
		p.routes.byStream[stream] = known
	}
	if old, found := p.routes.bySubject[subject]; !found || old.ordered != known.ordered {
		if known.limit == 0 {
			known.limit = old.limit
		}
		p.routes.set(subject, known)
	}
}

// ask finds out what a stream is like, of which it knows the name or else a
// subject. A question that is forbidden gets no answer, so the first that stays
// without one is the last on this connection.
func (p *session) ask(ctx context.Context, stream, subject string) route {
	if p.untold {
		return route{}
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	var err error
	if stream == "" {
		stream, err = p.js.StreamNameBySubject(ctx, subject)
	}
	var handle jetstream.Stream
	if err == nil {
		handle, err = p.js.Stream(ctx, stream)
	}
	if err != nil {
		p.untold = errors.Is(err, context.DeadlineExceeded)
		return route{}
	}
	info := handle.CachedInfo()
	alone := info.Cluster != nil && info.Cluster.Leader == p.conn.ConnectedServerName()
	return route{
		ordered: alone && info.Config.Replicas <= 1 && info.Config.Discard == jetstream.DiscardOld,
		limit:   max(0, int(info.Config.MaxMsgSize)),
	}
}

func tooLarge(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == errTooLarge
}

// shrink lowers the limit of the subject of an event that was too large for its
// stream: to the stream's limit if it can be asked for, else to half of what was
// tried. It returns false when there is nothing to gain.
func (p *session) shrink(ctx context.Context, refused inFlight) bool {
	lower := refused.size / 2
	if limit := p.ask(ctx, "", refused.msg.Subject).limit; limit > 0 && limit < refused.size {
		lower = limit
	}
	if lower < minLimit {
		return false
	}
	p.routes.set(refused.msg.Subject, route{limit: lower})
	return true
}

// pipeline decides which events may be in flight together. The zero value is empty.
type pipeline struct {
	ordered map[string]bool // by query: whether all its events so far go to ordered streams
}

// admits tells whether an event of the query may be sent before the others in
// flight are acknowledged, and counts it if so.
func (w *pipeline) admits(query string, ordered bool) bool {
	if w.ordered == nil {
		w.ordered = make(map[string]bool)
	}
	before, seen := w.ordered[query]
	if seen && (!before || !ordered) {
		return false
	}
	w.ordered[query] = ordered
	return true
}
