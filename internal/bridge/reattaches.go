package bridge

import (
	"sync/atomic"

	"sparkbridge/internal/watch"
)

// reattaches counts how often a source has read on in its operation on the server.
type reattaches struct{ end, broken, restart atomic.Uint64 }

// stream counts a stream that goes on where another ended, or broke.
func (r *reattaches) stream(broken bool) {
	if broken {
		r.broken.Add(1)
	} else {
		r.end.Add(1)
	}
}

func (r *reattaches) counts() map[watch.Stop]uint64 {
	return map[watch.Stop]uint64{watch.StopEnd: r.end.Load(), watch.StopBreak: r.broken.Load(), watch.StopRestart: r.restart.Load()}
}
