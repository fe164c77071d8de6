package sinks

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// saveEvery is how far a stored cursor may lag while events flow.
	saveEvery = 100 * time.Millisecond
	// saveAgain is the wait after a save that failed.
	saveAgain = time.Second
)

// cursorKeeper saves a cursor beside the deliveries, at most once in saveEvery:
// a single event's cursor at once, that of many together.
type cursorKeeper struct {
	store  Cursor
	outage outage
	moved  chan struct{}

	mu   sync.Mutex
	next uint64 // 0: never moved
}

func newCursorKeeper(store Cursor, log *slog.Logger) *cursorKeeper {
	return &cursorKeeper{
		store:  store,
		outage: outage{log: log, step: "save cursor"},
		moved:  make(chan struct{}, 1),
	}
}

// move says that everything before next is acknowledged.
func (k *cursorKeeper) move(next uint64) {
	k.mu.Lock()
	k.next = next
	k.mu.Unlock()
	k.wake()
}

func (k *cursorKeeper) wake() {
	select {
	case k.moved <- struct{}{}:
	default: // it is awake already and will see the newest
	}
}

// run saves until ctx ends, and then once more what is not saved yet.
func (k *cursorKeeper) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			select {
			case <-k.moved:
				k.save()
			default:
			}
			return
		case <-k.moved:
		}
		if k.save() {
			sleep(ctx, saveEvery)
		} else {
			k.wake() // the cursor only lags: try again until it is kept
			sleep(ctx, saveAgain)
		}
	}
}

func (k *cursorKeeper) save() bool {
	k.mu.Lock()
	next := k.next
	k.mu.Unlock()
	if err := k.store.Save(next); err != nil {
		k.outage.fail(err, "next", next)
		return false
	}
	k.outage.over()
	return true
}
