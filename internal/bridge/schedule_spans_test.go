package bridge

import (
	"slices"
	"time"
)

// span is a time; spans are some, in any order.
type (
	span  struct{ from, to time.Time }
	spans []span
)

func (s spans) cover(at time.Time) bool {
	return slices.ContainsFunc(s, func(x span) bool { return !at.Before(x.from) && !at.After(x.to) })
}

// touch says whether one of the spans has a moment in common with another.
func (s spans) touch(other span) bool {
	return slices.ContainsFunc(s, func(x span) bool { return !x.to.Before(other.from) && !x.from.After(other.to) })
}

// between are the times longer than settle that no span covers, without that much at
// their beginning.
func (s spans) between(from time.Time, settle time.Duration) spans {
	sorted := slices.SortedFunc(slices.Values(s), func(a, b span) int { return a.from.Compare(b.from) })
	var calm spans
	for _, x := range sorted {
		if ready := from.Add(settle); ready.Before(x.from) {
			calm = append(calm, span{ready, x.from})
		}
		if x.to.After(from) {
			from = x.to
		}
	}
	return calm
}
