package console

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sparkbridge/connect"
	"sparkbridge/internal/lines"
	"sparkbridge/listener"
)

// longestStatus is how many characters of what a query does are listed.
const longestStatus = 48

// List shows the queries that run in a session.
func (c *Console) List(ctx context.Context, s *connect.Session) error {
	active, err := s.Streams().Active(ctx)
	if err != nil {
		return err
	}
	documents, rows := []listDocument{}, []string{}
	for _, q := range active {
		status, err := q.Status(ctx)
		if err != nil {
			return err
		}
		last, err := q.LastProgress(ctx)
		if err != nil {
			return err
		}
		documents = append(documents, listDocument{statusDocument{instanceOf(q), status}, raw(last)})
		rows = append(rows, c.row(q, status, last))
	}
	switch {
	case c.JSON:
		return c.document(documents)
	case len(rows) == 0:
		c.note("no query runs in this session")
		return nil
	}
	return c.table("NAME\tSTATUS\tBATCH\tAT\tROWS/S IN\tROWS/S OUT\tID\tRUN ID", rows)
}

func (c *Console) row(q *connect.StreamingQuery, status connect.Status, last *listener.Progress) string {
	batch, at, in, out := "-", "-", "-", "-"
	if last != nil {
		batch, at = fmt.Sprint(last.BatchID), c.clock(last.Timestamp)
		in, out = rate(last.InputRowsPerSecond), rate(last.ProcessedRowsPerSecond)
	}
	name := lines.OneLine(q.Name())
	if name == "" {
		name = "-"
	}
	return strings.Join([]string{name, lines.Cut(lines.OneLine(status.Message), longestStatus), batch, at, in, out, q.ID(), q.RunID()}, "\t")
}

// Status shows what one query does.
func (c *Console) Status(ctx context.Context, s *connect.Session, name string) error {
	q, err := find(ctx, s, name)
	if err != nil {
		return err
	}
	status, err := q.Status(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		return c.document(statusDocument{instanceOf(q), status})
	}
	return c.fields(
		[2]string{"name", q.Name()}, [2]string{"id", q.ID()}, [2]string{"run id", q.RunID()},
		[2]string{"status", status.Message}, [2]string{"active", yes(status.IsActive)},
		[2]string{"data available", yes(status.IsDataAvailable)}, [2]string{"trigger active", yes(status.IsTriggerActive)},
	)
}

func yes(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// raw is Spark's own document, null where there is none.
func raw(p *listener.Progress) json.RawMessage {
	if p == nil {
		return nil
	}
	return p.Raw
}

// clock is the time of day, with the day where it is another one than today.
func (c *Console) clock(at time.Time) string {
	at, now := at.In(c.zone), time.Now().In(c.zone)
	if at.Year() == now.Year() && at.YearDay() == now.YearDay() {
		return at.Format(time.TimeOnly)
	}
	return at.Format(time.DateTime)
}
