package sinks

import (
	"slices"
	"sync"
)

// ledger knows which of the events that were read are not settled yet, neither
// delivered nor dropped nor among the dead letters. The zero value has read nothing. It
// may be asked while it is changed.
type ledger struct {
	mu   sync.Mutex
	open []uint64 // ascending
	read uint64   // sequence after the last that was read
}

// begin notes an event that was read.
func (l *ledger) begin(sequence uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read = max(l.read, sequence+1)
	if i, found := slices.BinarySearch(l.open, sequence); !found {
		l.open = slices.Insert(l.open, i, sequence)
	}
}

// settle notes that nothing more is to be done for an event.
func (l *ledger) settle(sequence uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i, found := slices.BinarySearch(l.open, sequence); found {
		l.open = slices.Delete(l.open, i, i+1)
	}
}

// next is the first sequence that is not settled: where to read on after a restart.
func (l *ledger) next() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.open) > 0 {
		return l.open[0]
	}
	return l.read
}

// pass notes that events up to a sequence cannot be read any more.
func (l *ledger) pass(to uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.read = max(l.read, to+1)
}

// settled says whether an event was read and nothing more is to be done for it.
func (l *ledger) settled(sequence uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, open := slices.BinarySearch(l.open, sequence)
	return sequence < l.read && !open
}
