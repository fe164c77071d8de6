package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sparkbridge/connect"
	"sparkbridge/internal/lines"
	"sparkbridge/listener"
)

// Progress shows what a query has done last.
func (c *Console) Progress(ctx context.Context, s *connect.Session, name string) error {
	q, err := find(ctx, s, name)
	if err != nil {
		return err
	}
	last, err := q.LastProgress(ctx)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return c.document(raw(last))
	case last == nil:
		c.note("%s has not told any progress yet", label(q))
		return nil
	}
	return c.fields(c.details(last)...)
}

// Recent shows all progress that Spark keeps of a query, oldest first.
func (c *Console) Recent(ctx context.Context, s *connect.Session, name string) error {
	q, err := find(ctx, s, name)
	if err != nil {
		return err
	}
	recent, err := q.RecentProgress(ctx)
	switch {
	case err != nil:
		return err
	case c.JSON:
		return c.document(append([]*listener.Progress{}, recent...))
	case len(recent) == 0:
		c.note("%s has not told any progress yet", label(q))
	}
	return c.batches(recent)
}

// Follow shows each batch of a query as it comes, beginning with the last one, or with all
// that Spark keeps, until the query or ctx has ended. That the query has failed is an error.
func (c *Console) Follow(ctx context.Context, s *connect.Session, name string, recent bool) error {
	q, err := find(ctx, s, name)
	if err != nil {
		return err
	}
	if err := c.follow(ctx, follower{q: q, all: recent}); ctx.Err() == nil {
		return err
	}
	return nil
}

func (c *Console) follow(ctx context.Context, f follower) error {
	next := time.NewTicker(glance)
	defer next.Stop()
	for {
		active, err := f.q.IsActive(ctx)
		if err != nil {
			return err
		}
		news, err := f.news(ctx)
		if err != nil {
			return err
		}
		if err := c.batches(news); err != nil {
			return err
		}
		if !active {
			return c.closing(ctx, f.q)
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// closing tells how a run has ended that was followed.
func (c *Console) closing(ctx context.Context, q *connect.StreamingQuery) error {
	failed, err := q.Exception(ctx)
	switch {
	case err != nil:
		return err
	case failed != nil:
		return failedError{failed}
	}
	c.note("%s has ended", label(q))
	return nil
}

// follower asks a run for what it has not told yet.
type follower struct {
	q    *connect.StreamingQuery
	all  bool // what was there at the beginning, too
	told *listener.Progress
}

func (f *follower) news(ctx context.Context) ([]*listener.Progress, error) {
	last, err := f.q.LastProgress(ctx)
	if err != nil || last == nil || f.told != nil && inOrder(last, f.told) <= 0 {
		return nil, err
	}
	news := []*listener.Progress{last}
	if f.told != nil || f.all {
		if news, err = f.q.RecentProgress(ctx); err != nil {
			return nil, err
		}
	}
	if f.told != nil {
		news = slices.DeleteFunc(news, func(p *listener.Progress) bool { return inOrder(p, f.told) <= 0 })
	}
	if len(news) > 0 {
		f.told = news[len(news)-1]
	}
	return news, nil
}

// inOrder compares two documents of a run. Those of triggers that found nothing have the
// number of the batch that comes next.
func inOrder(a, b *listener.Progress) int {
	return cmp.Or(a.Timestamp.Compare(b.Timestamp), cmp.Compare(a.BatchID, b.BatchID))
}

// batches prints a line for each batch.
func (c *Console) batches(progress []*listener.Progress) error {
	for _, p := range progress {
		var err error
		if c.JSON {
			err = c.line(p)
		} else {
			_, err = fmt.Fprintf(c.out, "%s  %s\n", c.clock(p.Timestamp), c.batch(p))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// batch is what a batch has done, on one line.
func (c *Console) batch(p *listener.Progress) string {
	if p.Idle() {
		return "no new data"
	}
	parts := []string{fmt.Sprintf("batch %d", p.BatchID), count(p.NumInputRows) + " rows",
		rate(p.InputRowsPerSecond) + "/s in", rate(p.ProcessedRowsPerSecond) + "/s out"}
	if took, ok := p.DurationMs["triggerExecution"]; ok {
		parts = append(parts, lines.Took(time.Duration(took)*time.Millisecond))
	}
	if len(p.StateOperators) > 0 {
		parts = append(parts, count(inState(p))+" in state")
	}
	if p.EventTime.Watermark.Unix() > 0 {
		parts = append(parts, "watermark "+c.clock(p.EventTime.Watermark))
	}
	return strings.Join(parts, ", ")
}

// details is what a batch has done, by name.
func (c *Console) details(p *listener.Progress) [][2]string {
	pairs := [][2]string{
		{"batch", fmt.Sprintf("%d, of %s", p.BatchID, c.clock(p.Timestamp))},
		{"rows", fmt.Sprintf("%s, %s/s in, %s/s out", count(p.NumInputRows), rate(p.InputRowsPerSecond), rate(p.ProcessedRowsPerSecond))},
		{"took", phases(p.DurationMs)},
	}
	if p.Idle() {
		pairs = [][2]string{{"batch", fmt.Sprintf("no new data at %s", c.clock(p.Timestamp))}}
	}
	if p.EventTime.Watermark.Unix() > 0 {
		pairs = append(pairs, [2]string{"watermark", c.clock(p.EventTime.Watermark)})
	}
	for _, o := range p.StateOperators {
		pairs = append(pairs, [2]string{"state", fmt.Sprintf("%s: %s rows, %s updated, %s too late, %s bytes",
			o.OperatorName, count(o.NumRowsTotal), count(o.NumRowsUpdated), count(o.NumRowsDroppedByWatermark), count(o.MemoryUsedBytes))})
	}
	for _, s := range p.Sources {
		pairs = append(pairs, [2]string{"source", fmt.Sprintf("%s: %s rows, up to %s", s.Description, count(s.NumInputRows), s.EndOffset)})
	}
	pairs = append(pairs, [2]string{"sink", fmt.Sprintf("%s: %s rows", p.Sink.Description, count(p.Sink.NumOutputRows))})
	for _, name := range slices.Sorted(maps.Keys(p.ObservedMetrics)) {
		pairs = append(pairs, [2]string{"observed", fmt.Sprintf("%s: %s", name, p.ObservedMetrics[name])})
	}
	return pairs
}

// phases is how long a trigger took, and the parts of it that took longest first.
func phases(ms map[string]int64) string {
	const all = "triggerExecution"
	names := slices.SortedFunc(maps.Keys(ms), func(a, b string) int { return cmp.Or(cmp.Compare(ms[b], ms[a]), cmp.Compare(a, b)) })
	var parts []string
	for _, name := range names {
		if name != all && ms[name] > 0 {
			parts = append(parts, name+" "+lines.Took(time.Duration(ms[name])*time.Millisecond))
		}
	}
	total, ok := ms[all]
	if !ok {
		return cmp.Or(strings.Join(parts, ", "), "-")
	}
	return strings.TrimSuffix(lines.Took(time.Duration(total)*time.Millisecond)+": "+strings.Join(parts, ", "), ": ")
}

// inState sums up the rows of all operators; what one does not tell counts for nothing.
func inState(p *listener.Progress) *int64 {
	rows := int64(0)
	for _, o := range p.StateOperators {
		if o.NumRowsTotal != nil {
			rows += *o.NumRowsTotal
		}
	}
	return &rows
}

// count is a whole number, - where Spark does not tell it.
func count(n *int64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// rate is a number per second, - where Spark does not tell it, or it is not finite.
func rate(n *float64) string {
	if n == nil || *n-*n != 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", *n)
}
