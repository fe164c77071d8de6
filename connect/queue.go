package connect

import (
	"context"
	"sync"

	"sparkbridge/listener"
)

const (
	// What is read ahead. A full queue stops the reading, and so the server.
	queueFrames = 1024
	queueBytes  = 8 << 20
	// What one delivery holds, unless a single response is larger.
	deliveryEvents = 256
	deliveryBytes  = 4 << 20
)

// frame is one response of the bus. Without events it only moves the position.
type frame struct {
	id     string
	events []listener.Raw
	bytes  int
}

// queue holds the responses between the reader and Next, one goroutine each.
type queue struct {
	mu     sync.Mutex
	frames []frame
	bytes  int
	events int
	err    error // why nothing more comes

	more chan struct{} // there is something for pull
	room chan struct{} // there may be room for push
}

func newQueue() *queue {
	return &queue{more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
}

// push waits for room. A response larger than the queue is taken when it is empty.
func (q *queue) push(ctx context.Context, f frame) error {
	for !q.offer(f) {
		select {
		case <-q.room:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (q *queue) offer(f frame) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.frames) > 0 && (len(q.frames) >= queueFrames || q.bytes+f.bytes > queueBytes) {
		return false
	}
	q.frames = append(q.frames, f)
	q.bytes += f.bytes
	q.events += len(f.events)
	signal(q.more)
	return true
}

// pull takes what one delivery may hold. When there is nothing it returns the
// error that ended the queue, or nil while more may come.
func (q *queue) pull() (listener.Delivery, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.frames) == 0 {
		return listener.Delivery{}, q.err
	}
	var d listener.Delivery
	n, bytes := 0, 0
	for _, f := range q.frames {
		if n > 0 && (len(d.Events)+len(f.events) > deliveryEvents || bytes+f.bytes > deliveryBytes) {
			break
		}
		d.Events = append(d.Events, f.events...)
		if f.id != "" {
			d.Position = f.id
		}
		bytes += f.bytes
		n++
	}
	clear(q.frames[:n]) // what has left must not be held by the array
	q.frames = q.frames[n:]
	q.bytes -= bytes
	q.events -= len(d.Events)
	signal(q.room)
	return d, nil
}

// end says why nothing more comes; the first reason stays.
func (q *queue) end(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err == nil {
		q.err = err
	}
	signal(q.more)
}

// waiting is how many events have not been pulled.
func (q *queue) waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.events
}

// ended is why nothing more comes, nil while it may.
func (q *queue) ended() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
