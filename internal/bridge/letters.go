package bridge

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"sparkbridge/internal/control"
	"sparkbridge/internal/journal"
	"sparkbridge/sinks"
)

// letters are the dead letters of one sink, in the journal's state.
type letters struct {
	state *journal.State
	sink  string
	max   int
	log   *slog.Logger

	mu     sync.Mutex
	causes map[uint64]sinks.Cause // of all that there are
}

var (
	_ sinks.Letters   = (*letters)(nil)
	_ control.Letters = (*letters)(nil)
)

func openLetters(state *journal.State, sink string, limit int, log *slog.Logger) (*letters, error) {
	l := &letters{state: state, sink: sink, max: limit, log: log.With("sink", sink), causes: map[uint64]sinks.Cause{}}
	err := l.Each(0, func(letter sinks.Letter) error {
		l.causes[letter.Event.Sequence] = letter.Cause
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read dead letters of sink %s: %w", sink, err)
	}
	return l, nil
}

// Add stores letters. Where there is no room the oldest of those that expired go: they
// were not worth sending.
func (l *letters) Add(added ...sinks.Letter) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.add(added)
}

func (l *letters) add(added []sinks.Letter) error {
	blobs := make(map[uint64][]byte, len(added))
	causes := maps.Clone(l.causes)
	for _, letter := range added {
		blob, err := sinks.EncodeLetter(letter)
		if err != nil {
			return err
		}
		blobs[letter.Event.Sequence] = blob
		causes[letter.Event.Sequence] = letter.Cause
	}
	room, err := l.makeRoom(causes)
	if err != nil {
		return err
	}
	for _, sequence := range room {
		delete(blobs, sequence)
		delete(causes, sequence)
	}
	if err := l.state.Change(journal.ShelfLetters, l.sink, blobs, room...); err != nil {
		return err
	}
	l.causes = causes
	if len(room) > 0 {
		l.log.Warn("expired dead letters made room for others", "count", len(room), "from", room[0], "to", room[len(room)-1])
	}
	return nil
}

// makeRoom returns which of the letters that there are to be must go so that the others
// fit.
func (l *letters) makeRoom(causes map[uint64]sinks.Cause) ([]uint64, error) {
	excess := len(causes) - l.max
	if excess <= 0 || len(causes) == len(l.causes) {
		return nil, nil
	}
	var expired []uint64
	for sequence, cause := range causes {
		if cause == sinks.CauseExpired {
			expired = append(expired, sequence)
		}
	}
	nothingFits := len(l.causes) >= l.max && !slices.Contains(slices.Collect(maps.Values(l.causes)), sinks.CauseExpired)
	if len(expired) < excess || nothingFits {
		return nil, fmt.Errorf("%w: there are %d, and dead_letters.max of sink %s is %d; send or drop some (bridge dlq), or raise it",
			sinks.ErrLettersFull, len(l.causes), l.sink, l.max)
	}
	slices.Sort(expired)
	return expired[:excess], nil
}

// Each calls fn with the letters from a sequence on, until it returns an error.
func (l *letters) Each(from uint64, fn func(sinks.Letter) error) error {
	return l.state.Each(journal.ShelfLetters, l.sink, from, func(_ uint64, blob []byte) error {
		letter, err := sinks.DecodeLetter(blob)
		if err != nil {
			return err
		}
		return fn(letter)
	})
}

// Drop deletes a letter.
func (l *letters) Drop(sequence uint64) error {
	_, err := l.Discard([]uint64{sequence})
	return err
}

// count is how many there are.
func (l *letters) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.causes)
}

// Retry marks letters to be tried once more, all of them if none is named. It returns
// which.
func (l *letters) Retry(named []uint64) (marked []uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for sequence := range l.causes {
		if len(named) == 0 || slices.Contains(named, sequence) {
			marked = append(marked, sequence)
		}
	}
	slices.Sort(marked)
	for some := range slices.Chunk(marked, fewLetters) {
		if err := l.mark(some); err != nil {
			return nil, err
		}
	}
	return marked, nil
}

// fewLetters is how many are rewritten at once: there may be many, and large ones.
const fewLetters = 64

// mark marks letters that there are.
func (l *letters) mark(some []uint64) error {
	var chosen []sinks.Letter
	err := l.Each(some[0], func(letter sinks.Letter) error {
		if letter.Event.Sequence > some[len(some)-1] {
			return errEnough
		}
		if _, wanted := slices.BinarySearch(some, letter.Event.Sequence); wanted {
			letter.Retry = true
			chosen = append(chosen, letter)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return l.add(chosen)
}

// Discard deletes letters, all of them if none is named. It returns which.
func (l *letters) Discard(named []uint64) (gone []uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for sequence := range l.causes {
		if len(named) == 0 || slices.Contains(named, sequence) {
			gone = append(gone, sequence)
		}
	}
	slices.Sort(gone)
	if err := l.state.Change(journal.ShelfLetters, l.sink, nil, gone...); err != nil {
		return nil, err
	}
	for _, sequence := range gone {
		delete(l.causes, sequence)
	}
	return gone, nil
}
