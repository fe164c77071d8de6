package listener

import (
	"context"
	"errors"
	"time"
)

// active asks which queries are active. No answer leaves the matter open; it is
// asked again.
func (f *Feed) active(ctx context.Context) ([]Query, error) {
	if !f.answering() {
		return nil, errNotAsked
	}
	asking, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	queries, err := f.Spark.Active(asking)
	if err != nil {
		f.unanswered(ctx, err)
		return nil, err
	}
	if f.askFailed {
		f.askFailed = false
		f.Log.Info("spark answers questions about its queries again")
	}
	return queries, nil
}

// errNotAsked says that a question was put off.
var errNotAsked = errors.New("spark did not answer a moment ago")

// idle says whether no query has been active for so long that the session is to be
// let go.
func (f *Feed) idle(queries []Query) bool {
	switch {
	case f.DetachAfter <= 0 || len(queries) > 0:
		f.idleSince = time.Time{}
		return false
	case f.idleSince.IsZero():
		f.idleSince = time.Now()
	}
	return time.Since(f.idleSince) >= f.DetachAfter
}

// failure asks how a run has ended. That Spark does not know it any more is an
// answer too.
func (f *Feed) failure(ctx context.Context, q Query) (*Failure, Outcome, bool) {
	asking, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	failure, err := f.Spark.Exception(asking, q)
	switch {
	case errors.Is(err, ErrNoQuery):
		return nil, OutcomeUnknown, true
	case err != nil:
		f.unanswered(ctx, err)
		return nil, "", false
	case failure == nil:
		return nil, OutcomeStopped, true
	default:
		return failure, OutcomeFailed, true
	}
}

// answering says whether Spark may be asked: not again and again while it does not
// answer, since the stream is not read meanwhile.
func (f *Feed) answering() bool { return !time.Now().Before(f.askAgain) }

func (f *Feed) unanswered(ctx context.Context, err error) {
	if ctx.Err() == nil && !f.askFailed {
		f.Log.Warn("spark does not answer questions about its queries; names, starts and repairs may come late", "err", err)
	}
	f.askFailed, f.askAgain = true, time.Now().Add(askPause)
}
