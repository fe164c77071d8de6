package watch

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// bounds are the upper ends of a histogram's classes, in seconds.
var bounds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

// Histogram counts durations by how long they are. Its zero value is empty and ready.
type Histogram struct {
	mu  sync.Mutex
	now Durations
}

// Durations are the contents of a histogram.
type Durations struct {
	Count uint64
	Sum   float64 // seconds
	// Upto counts, by an upper bound in seconds, what took no longer.
	Upto map[float64]uint64
}

// Add counts one duration.
func (h *Histogram) Add(d time.Duration) {
	seconds := d.Seconds()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now.Count++
	h.now.Sum += seconds
	if h.now.Upto == nil {
		h.now.Upto = emptyClasses()
	}
	first, _ := slices.BinarySearch(bounds, seconds)
	for _, b := range bounds[first:] {
		h.now.Upto[b]++
	}
}

// Durations returns a copy of what was counted.
func (h *Histogram) Durations() Durations {
	h.mu.Lock()
	defer h.mu.Unlock()
	copied := h.now
	if copied.Upto = maps.Clone(h.now.Upto); copied.Upto == nil {
		copied.Upto = emptyClasses()
	}
	return copied
}

func emptyClasses() map[float64]uint64 {
	classes := make(map[float64]uint64, len(bounds))
	for _, b := range bounds {
		classes[b] = 0
	}
	return classes
}
