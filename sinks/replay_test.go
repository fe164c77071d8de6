package sinks_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/listener"
	"sparkbridge/sinks"
)

// torn is a box whose journal has lost a range.
type torn struct {
	*box
	lost sinks.LostError
}

func (b *torn) Open(from, to uint64) (sinks.Source, func() error, error) {
	before, closeReel, err := b.box.Open(from, min(to, b.lost.From))
	if err != nil || from > b.lost.To {
		return before, closeReel, err
	}
	after, _, err := b.box.Open(b.lost.To+1, to)
	return &tornReel{before.(*reel), after.(*reel), b.lost, false}, closeReel, err
}

type tornReel struct {
	before, after *reel
	lost          sinks.LostError
	told          bool
}

func (r *tornReel) Next(ctx context.Context, maxEvents, maxBytes int) ([]listener.Event, error) {
	switch {
	case len(r.before.events) > 0:
		return r.before.Next(ctx, maxEvents, maxBytes)
	case !r.told:
		r.told = true
		return nil, &r.lost
	}
	return r.after.Next(ctx, maxEvents, maxBytes)
}

// What retention took of a replay is told at its end, once, wherever a restart came.
func TestAReplayTellsWhatIsMissing(t *testing.T) {
	for name, c := range map[string]struct{ first, stuck []uint64 }{ // fail, and then still
		"no restart":                        {},
		"a restart before it":               {[]uint64{2}, []uint64{2}},
		"a restart behind it":               {[]uint64{8}, []uint64{8}},
		"a restart when more was set aside": {[]uint64{2, 3}, []uint64{3}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &torn{&box{journal: lanes(3, 9), replays: []sinks.Replay{{ID: "r1", From: 1, To: 10}}}, sinks.LostError{From: 4, To: 6}}
				var fails atomic.Value
				fails.Store(c.first)
				s := &script{deliver: func(_ context.Context, events []listener.Event) (int, error) {
					for i, e := range events {
						if slices.Contains(fails.Load().([]uint64), e.Sequence) {
							return i, errors.New("500")
						}
					}
					return len(events), nil
				}}
				with := func(o *sinks.Options) { o.Replays = b }
				if len(c.stuck) > 0 {
					_, stop := s.run(t, b.box, with)
					time.Sleep(10 * time.Minute)
					fails.Store(c.stuck)
					time.Sleep(10 * time.Minute)
					if err := stop(); err != nil || len(b.replays) != 1 || b.replays[0].Next != c.stuck[0] {
						t.Fatalf("stopped with %v, replays %+v", err, b.replays)
					}
					fails.Store([]uint64(nil))
				}
				_, stop := s.run(t, b.box, with)
				time.Sleep(time.Minute)
				if err := stop(); err != nil || len(b.replays) != 0 {
					t.Errorf("stopped with %v, replays %+v", err, b.replays)
				}
				said := s.log.String()
				if strings.Count(said, "replay ends") != 1 || !strings.Contains(said, "level=ERROR msg=\"replay ends without what retention took meanwhile\" sink=events replay=r1 missing=3") {
					t.Errorf("logged %s", said)
				}
			})
		})
	}
}
