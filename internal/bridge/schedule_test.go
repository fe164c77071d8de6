package bridge

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect/connecttest"
	"sparkbridge/internal/journal"
)

var (
	seedCount = flag.Uint64("seeds", defaultSeeds, "how many schedules of faults are played")
	oneSeed   = flag.Uint64("seed", 0, "play the schedule of this seed alone, and show what happens")
)

// noContext never ends.
var noContext = context.Background()

const (
	// settling is how long after the last trouble everything is as it should be: the
	// longest pauses have passed and what was missed has been asked for.
	settling = 6 * time.Minute
	// settlingTaken is the same where a bus that another client held is only waited for.
	settlingTaken = 13 * time.Minute
	// ending is the calm at the end.
	ending = 5 * time.Minute
)

// schedule is one seed: a job, a bridge that watches it, and what befalls them.
type schedule struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	world   schedworld
	steps   []step
	spark   *connecttest.Server
	job     *job
	lookout *lookout
	log     *lines
	root    string // of the journals
	began   time.Time
	hit     map[string]int // what was met, over all seeds

	full    atomic.Bool
	life    *life
	stopped bool // the life was stopped on purpose
	lives   []*life
	held    time.Time // since when another client holds the bus, zero while none does
	// silenced is when a call was last made to hang.
	silenced time.Time
	// driverDown says that the driver does not run.
	driverDown    bool
	troubles      spans                // when something was wrong
	weather       spans                // when the bridge could not see what is so
	blind         spans                // the same, without sessions that closed
	named         string               // the session that the bridge was told
	driverStopped time.Time            // the last time
	moved         map[string]time.Time // when it was told of the next one, by session
	foreign       spans                // when another client held the bus
}

func TestSchedules(t *testing.T) {
	if *oneSeed != 0 {
		play(t, *oneSeed, map[string]int{})
		return
	}
	met := map[string]int{}
	for seed := uint64(1); seed <= *seedCount; seed++ {
		play(t, seed, met)
	}
	if *seedCount >= 200 && !t.Failed() {
		covered(t, met)
	}
}

// play plays one seed.
func play(t *testing.T, seed uint64, met map[string]int) {
	t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newSchedule(t, seed, met)
			s.run()
			s.judge()
		})
	})
}

// run plays the steps, lets what they did pass, and stops the bridge.
func (s *schedule) run() {
	s.nameSession()
	s.connect()
	over := make(chan struct{})
	var working sync.WaitGroup
	working.Go(func() { s.job.work(over) })
	s.up()
	s.follow()
	s.mendAll()
	settle := settling
	if s.world.source.Mode == configs.ModeBus {
		settle = settlingTaken
	}
	time.Sleep(settle + ending)
	s.holds()
	close(over)
	working.Wait()
	time.Sleep(20 * time.Second)
	synctest.Wait()
	s.troubles = append(s.troubles, span{time.Now(), time.Now().Add(time.Hour)})
	s.down()
	for _, l := range s.lives {
		<-l.done
	}
}

// holds checks that the bridge has the bus in the calm at the end, unless another client
// had it so late that it has not been tried since.
func (s *schedule) holds() {
	late := time.Now().Add(-settlingTaken)
	if s.world.source.Mode == configs.ModePoll || slices.ContainsFunc(s.foreign, func(x span) bool { return x.to.After(late) }) {
		return
	}
	if operation, _ := s.job.now().Holder(); operation != "" || !s.job.busy() {
		return
	}
	for held := range s.job.held {
		if s.log.count("operation_id="+held) == 0 {
			return // its acknowledgement never arrived, so it is in our own way, and nobody can tell
		}
	}
	s.lookout.report("the bridge does not hold the bus in the end")
}

// follow plays the steps, each to its end, in the order of what happens.
func (s *schedule) follow() {
	type moment struct {
		at time.Duration
		do func()
	}
	byKind := map[string]trouble{}
	for _, k := range troubles() {
		byKind[k.kind] = k
	}
	var moments []moment
	for _, t := range s.steps {
		k := byKind[t.kind]
		moments = append(moments, moment{t.at, func() {
			s.hit[t.kind]++
			s.say("%s", t)
			s.note(t)
			k.begin(s, t)
		}})
		if k.end != nil {
			moments = append(moments, moment{t.at + t.lasts, func() { s.say("end of %s", t.kind); k.end(s, t) }})
		}
	}
	slices.SortStableFunc(moments, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	for _, m := range moments {
		time.Sleep(time.Until(s.began.Add(m.at)))
		m.do()
	}
}

// note notes when something is wrong. A step that begins late is noted when it does.
func (s *schedule) note(t step) {
	now := time.Now()
	end := now.Add(t.lasts)
	s.troubles = append(s.troubles, span{now, end})
	switch t.kind {
	case "hold", "rob", "remove", "swallow", "burst", "quick":
	default:
		s.weather = append(s.weather, span{now, end.Add(settling)})
		if t.kind != "close" {
			s.blind = append(s.blind, span{now, end})
		}
	}
}

// mendAll ends whatever goes on.
func (s *schedule) mendAll() {
	s.spark.Heal()
	s.spark.Refuse(false)
	s.full.Store(false)
	s.startDriver()
	s.letGo()
	s.up()
	now := time.Now()
	s.troubles = append(s.troubles, span{now.Add(-time.Second), now})
}

// up starts a bridge where there is none.
func (s *schedule) up() {
	dir := filepath.Join(s.root, "journal")
	if l := s.life; l != nil {
		select {
		case <-l.done:
			if !s.stopped && !l.dead.Load() && !s.expected(l.err) {
				s.lookout.report("at %s the bridge had ended by itself: %v", s.since(time.Now()), l.err)
			}
		default:
			if !l.dead.Load() {
				l.fuse.Store(nil)
				return
			}
		}
		dir = l.next()
	}
	s.stopped = false
	s.world.source.OnStop = pick(s.rng, configs.OnStopRemove, configs.OnStopKeep)
	log := slog.New(slog.NewTextHandler(s.log, nil))
	l, err := beLife(s.spark, dir, s.world.source, s.lookout, &s.full, log)
	if err != nil {
		s.lookout.report("at %s the bridge did not start: %v", s.since(time.Now()), err)
		return
	}
	s.life, s.lives = l, append(s.lives, l)
}

// expected says whether the bridge may end so: a session that is closed for ever ends
// it where nothing brings another one.
func (s *schedule) expected(err error) bool {
	return err == nil || s.world.source.RemoteFile == "" && strings.Contains(err.Error(), "closed for ever")
}

// down stops the bridge.
func (s *schedule) down() {
	l := s.life
	if l.dead.Load() || s.stopped {
		return
	}
	select {
	case <-l.done:
		return // up tells of it
	default:
	}
	s.stopped = true
	l.stop()
	<-l.done
	if !s.expected(l.err) {
		s.lookout.report("at %s the bridge stopped with: %v", s.since(time.Now()), l.err)
	}
}

func (s *schedule) kill() {
	synctest.Wait()
	s.life.crash()
}

// light lets the bridge die in the middle of a write.
func (s *schedule) light(n int) {
	f := &fuse{step: pick(s.rng, journal.StepWrite, journal.StepSync, journal.StepState)}
	f.left.Store(int64(n % 5))
	s.life.fuse.Store(f)
}

func (s *schedule) since(at time.Time) time.Duration { return at.Sub(s.began).Round(time.Millisecond) }

func (s *schedule) say(format string, args ...any) {
	fmt.Fprintf(s.log, "time=%s ---- %s\n", time.Now().UTC().Format(time.RFC3339Nano), fmt.Sprintf(format, args...))
}
