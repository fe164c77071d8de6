package bridge

import (
	"context"
	"errors"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"sparkbridge/connect"
	"sparkbridge/internal/queries"
)

// plans lets Spark plan the configured queries, in a session of its own, so that nothing is
// changed in the job's. What only a start shows, such as a wrong output mode, stays open.
func (q *inquiry) plans(ctx context.Context, client *connect.Client, remote connect.Remote) {
	if len(q.cfg.Queries) == 0 {
		return
	}
	remote = owned(remote)
	remote.SessionID = ""
	session, err := client.Open(ctx, remote)
	if err != nil {
		q.fails("plan", "%v", err)
		return
	}
	q.planIn(ctx, session)
	if err := session.Close(); err != nil {
		q.fails("plan", "the session in which queries were planned was not closed: %v", err)
	}
}

func (q *inquiry) planIn(ctx context.Context, session *connect.Session) {
	if err := queries.Configure(ctx, session, q.cfg.Conf); err != nil {
		q.fails("conf", "%v", err)
		return
	}
	if n := len(q.cfg.Setup); n > 0 {
		q.unknown("setup", "a check does not run what may have an effect (statements in setup: %d)", n)
	}
	answers := make([]error, len(q.cfg.Queries))
	var asking errgroup.Group
	asking.SetLimit(askedAtOnce)
	for i := range q.cfg.Queries {
		asking.Go(func() error {
			_, answers[i] = queries.Plan(ctx, session, &q.cfg.Queries[i])
			return nil // each query has its own line
		})
	}
	_ = asking.Wait() // no query ends the others
	for i, err := range answers {
		q.planned(q.cfg.Queries[i].Name, err)
	}
}

// planned tells what Spark has said of one query.
func (q *inquiry) planned(name string, err error) {
	const about = "plan"
	runs := slices.ContainsFunc(q.Queries, func(c CheckedQuery) bool { return c.Name == name })
	switch {
	case err == nil && runs:
		q.works(about, "%s: can be planned; it runs already, and is left alone", name)
	case err == nil:
		q.works(about, "%s: can be planned; the bridge starts it", name)
	case isMissing(err) && len(q.cfg.Setup) > 0:
		q.unknown(about, "%s: %v; setup may make it", name, err)
	case isMissing(err) && !q.cfg.CreateSession:
		q.unknown(about, "%s: %v; the job's session may have it, but a check plans in a session of its own", name, err)
	default:
		q.fails(about, "%s: %v", name, err)
	}
}

// isMissing says that a query wants what its session does not have: a table, a view or a function.
func isMissing(err error) bool {
	var e *connect.Error
	return errors.As(err, &e) && (strings.HasSuffix(e.Class, "_NOT_FOUND") && e.Class != "DATA_SOURCE_NOT_FOUND" ||
		strings.HasPrefix(e.Class, "UNRESOLVED_ROUTINE"))
}
