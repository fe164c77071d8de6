package connect

import (
	"context"
	"errors"
)

// RunQuery starts a query, calls f with it, and stops it when f returns, whatever happens:
// also when f panics, or ctx has ended. It returns the error of f; where f has none, what
// the query has failed with meanwhile, a *QueryError.
func RunQuery(ctx context.Context, w *StreamWriter, f func(context.Context, *StreamingQuery) error) (err error) {
	q, err := w.Start(ctx)
	if err != nil {
		return err
	}
	defer func() {
		tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
		defer cancel()
		if stopped := q.Stop(tidy); stopped != nil {
			err = errors.Join(err, stopped)
			return
		}
		if err != nil {
			return
		}
		failed, asked := q.Exception(tidy)
		if failed != nil {
			err = failed
		} else {
			err = asked
		}
	}()
	return f(ctx, q)
}
