package journal

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

const (
	// groupBytes bounds what several Appends put into one group; a single one may
	// be larger.
	groupBytes = 4 << 20
	// spareBytes is the largest buffer that is kept for the next group.
	spareBytes = 8 << 20
)

// Append writes the bodies as consecutive records and returns the sequence of
// the first. On return they are on the disk. Appends that run beside each other
// share one write and one sync.
//
// After an error none of the bodies is in the log, and the journal stays usable:
// the caller may try again. When ctx ends before the write begins, its error is
// returned; a write that has begun is waited for. Without bodies there is
// nothing to do, and the next sequence is returned.
func (j *Journal) Append(ctx context.Context, bodies ...[]byte) (first uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("append records: %w", err)
	}
	c, err := newCall(bodies)
	if err != nil {
		return 0, fmt.Errorf("append records: %w", err)
	}
	if len(bodies) == 0 {
		_, next := j.Bounds()
		return next, nil
	}
	if !j.queue.add(c) {
		return 0, fmt.Errorf("append records: %w", ErrClosed)
	}
	if err := j.see(ctx, c); err != nil {
		return 0, fmt.Errorf("append records: %w", err)
	}
	return c.first, nil
}

// see waits until the call is done, by another Append or by this one.
func (j *Journal) see(ctx context.Context, c *call) error {
	for {
		select {
		case <-c.done:
			return c.err
		case <-ctx.Done():
			if j.queue.withdraw(c) {
				return ctx.Err()
			}
			<-c.done
			return c.err
		case j.pen <- struct{}{}:
			if calls := j.queue.take(groupBytes); len(calls) > 0 {
				finish(calls, j.write(calls))
			}
			<-j.pen
		}
	}
}

// call is one Append on its way.
type call struct {
	bodies [][]byte
	size   int64 // of its frames
	first  uint64
	err    error
	done   chan struct{}
}

func newCall(bodies [][]byte) (*call, error) {
	c := &call{bodies: bodies, done: make(chan struct{})}
	for _, b := range bodies {
		if len(b) > MaxBody {
			return nil, fmt.Errorf("%w: %d bytes, the most is %d", ErrTooLarge, len(b), MaxBody)
		}
		c.size += frameHead + int64(len(b))
	}
	return c, nil
}

func finish(calls []*call, err error) {
	for _, c := range calls {
		c.err = err
		close(c.done)
	}
}

// queue holds the Appends that wait to be written, in their order.
type queue struct {
	mu     sync.Mutex
	calls  []*call
	closed bool
}

func (q *queue) add(c *call) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.calls = append(q.calls, c)
	return true
}

// withdraw takes a call back and reports whether it was still waiting.
func (q *queue) withdraw(c *call) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.calls, c)
	if i < 0 {
		return false
	}
	q.calls = slices.Delete(q.calls, i, i+1)
	return true
}

// take removes calls from the front, up to limit bytes but at least one.
func (q *queue) take(limit int64) []*call {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, int64(0)
	for n < len(q.calls) && (n == 0 || size+q.calls[n].size <= limit) {
		size += q.calls[n].size
		n++
	}
	taken := slices.Clone(q.calls[:n])
	q.calls = slices.Delete(q.calls, 0, n)
	return taken
}

func (q *queue) close() {
	q.mu.Lock()
	calls := q.calls
	q.calls, q.closed = nil, true
	q.mu.Unlock()
	finish(calls, ErrClosed)
}
