package sinks

import "slices"

// ledger knows which of the events that were read are not settled yet, neither
// delivered nor dropped nor among the dead letters. The zero value has read nothing.
type ledger struct {
	open []uint64 // ascending
	read uint64   // sequence after the last that was read
}

// begin notes an event that was read.
func (l *ledger) begin(sequence uint64) {
	l.read = max(l.read, sequence+1)
	if i, found := slices.BinarySearch(l.open, sequence); !found {
		l.open = slices.Insert(l.open, i, sequence)
	}
}

// settle notes that nothing more is to be done for an event.
func (l *ledger) settle(sequence uint64) {
	if i, found := slices.BinarySearch(l.open, sequence); found {
		l.open = slices.Delete(l.open, i, i+1)
	}
}

// next is the first sequence that is not settled: where to read on after a restart.
func (l *ledger) next() uint64 {
	if len(l.open) > 0 {
		return l.open[0]
	}
	return l.read
}
