package console

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"sparkbridge/connect"
	"sparkbridge/internal/lines"
)

// find is the query that has a name, an id or a run id; id/runId is a run that may have
// ended, which Spark remembers by both only.
func find(ctx context.Context, s *connect.Session, name string) (*connect.StreamingQuery, error) {
	if id, run, both := strings.Cut(name, "/"); both && uuid.Validate(id) == nil && uuid.Validate(run) == nil {
		return s.Streams().Run(id, run), nil
	}
	active, err := s.Streams().Active(ctx)
	if err != nil {
		return nil, err
	}
	var found []*connect.StreamingQuery
	for _, q := range active {
		if name != "" && slices.Contains([]string{q.Name(), q.ID(), q.RunID()}, name) {
			found = append(found, q)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, fmt.Errorf("%d queries are called %q: use the id of one of %s", len(found), name, called(found))
	case len(active) == 0:
		return nil, fmt.Errorf("no query %q runs in this session, nor any other; one that has ended is named by id/runId", name)
	}
	return nil, fmt.Errorf("no query %q runs in this session: use one of %s; one that has ended is named by id/runId", name, called(active))
}

// called lists queries for people who look for one.
func called(queries []*connect.StreamingQuery) string {
	var names []string
	for _, q := range queries {
		name := q.ID()
		if q.Name() != "" {
			name = fmt.Sprintf("%s (%s)", lines.OneLine(q.Name()), q.ID())
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// label is what people call a query.
func label(q *connect.StreamingQuery) string {
	if q.Name() == "" {
		return q.ID()
	}
	return lines.OneLine(q.Name())
}
