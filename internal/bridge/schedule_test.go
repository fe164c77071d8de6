package bridge

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sparkbridge/configs"
	"sparkbridge/connect"
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
	ending = 4 * time.Minute
)

// schedule is one seed: a job, a bridge that watches it, and what befalls them.
type schedule struct {
	t     *testing.T
	seed  uint64
	rng   *rand.Rand
	world schedworld
	steps []step
	spark *connecttest.Server
	job   *job
	watch *watch
	log   *lines
	root  string // of the journals
	began time.Time
	hit   map[string]int // what was met, over all seeds

	full    atomic.Bool
	life    *life
	stopped bool // the life was stopped on purpose
	lives   []*life
	held    time.Time // since when another client holds the bus, zero while none does
	// silenced is when a call was last made to hang.
	silenced time.Time
	// driverDown says that the driver does not run.
	driverDown bool
	troubles   spans // when something was wrong
	weather    spans // when the bridge could not see what is so
	foreign    spans // when another client held the bus
}

// schedworld is what stays the same over one schedule.
type schedworld struct {
	options connecttest.Options
	source  configs.Source
	limit   string // of the connection string
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

func newSchedule(t *testing.T, seed uint64, met map[string]int) *schedule {
	rng := rand.New(rand.NewPCG(seed, 0x5ca1ab1e))
	w := newSchedWorld(t, rng)
	s := &schedule{t: t, seed: seed, rng: rng, world: w, steps: plan(rng), hit: met, log: &lines{}, root: journalRoot(t), began: time.Now()}
	s.spark = connecttest.Start(t, w.options)
	s.job = newJob(s.spark, rand.New(rand.NewPCG(seed, 1)))
	s.watch = newWatch(s.job)
	return s
}

func newSchedWorld(t *testing.T, rng *rand.Rand) schedworld {
	w := schedworld{
		options: connecttest.Options{
			Version:                 pick(rng, connecttest.Spark42, connecttest.Spark42, connecttest.Spark40),
			SenderMaxStreamDuration: pick(rng, 2*time.Minute, 2*time.Minute, 20*time.Second),
			RetryBufferBytes:        pick(rng, 0, 0, 0, 8<<10),
			NoExecutionProgress:     rng.IntN(2) == 0,
			SlowAdd:                 rng.IntN(4) == 0,
		},
		source: configs.Source{
			Name:         "etl",
			Mode:         pick(rng, configs.ModeAuto, configs.ModeAuto, configs.ModeAuto, configs.ModeAuto, configs.ModeBus, configs.ModePoll),
			Attach:       pick(rng, configs.AttachFirstQuery, configs.AttachFirstQuery, configs.AttachAtOnce),
			PollInterval: pick(rng, 5*time.Second, 10*time.Second),
		},
	}
	w.source.Takeover = w.source.Mode != configs.ModePoll && rng.IntN(6) == 0
	if rng.IntN(2) == 0 {
		w.source.RemoteFile = filepath.Join(t.TempDir(), "remote")
	}
	if rng.IntN(4) == 0 {
		w.limit = ";grpc_max_message_size=262144"
	}
	return w
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
	if operation, _ := s.job.now().Holder(); operation != "" {
		return
	}
	for held := range s.job.held {
		if s.log.count("operation_id="+held) == 0 {
			return // its acknowledgement never arrived, so it is in our own way, and nobody can tell
		}
	}
	s.watch.report("the bridge does not hold the bus in the end")
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
				s.watch.report("at %s the bridge had ended by itself: %v", s.since(time.Now()), l.err)
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
	l, err := beLife(s.spark, dir, s.world.source, s.watch, &s.full, log)
	if err != nil {
		s.watch.report("at %s the bridge did not start: %v", s.since(time.Now()), err)
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
		s.watch.report("at %s the bridge stopped with: %v", s.since(time.Now()), l.err)
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

func (s *schedule) stopDriver() {
	s.driverDown = true
	s.robbed()
	s.job.die()
	if err := s.spark.Stop(); err != nil {
		s.t.Fatal(err)
	}
}

// startDriver starts the driver where it does not run, and after a while the job.
func (s *schedule) startDriver() {
	if !s.driverDown {
		return
	}
	s.driverDown = false
	if err := s.spark.Restart(); err != nil {
		s.t.Fatal(err)
	}
	time.Sleep(rand64(s.rng, 20*time.Second))
	s.connect()
}

func (s *schedule) connect() {
	if err := s.job.connect(); err != nil {
		s.t.Fatal(err)
	}
}

// closeSession ends the job's session for ever.
func (s *schedule) closeSession() {
	s.robbed()
	s.job.close()
}

// reopenSession makes another session, and lets the bridge know of it.
func (s *schedule) reopenSession() {
	if !s.driverDown {
		s.connect()
	}
	s.nameSession()
	if s.world.source.RemoteFile == "" {
		s.down()
		s.up()
	}
}

// nameSession tells where the job's session is.
func (s *schedule) nameSession() {
	remote := fmt.Sprintf("sc://%s/;user_id=u;session_id=%s%s", s.spark.Addr(), s.job.sessionID, s.world.limit)
	if s.world.source.RemoteFile == "" {
		s.world.source.Remote = configs.ConnectionString(remote)
	} else if err := os.WriteFile(s.world.source.RemoteFile, []byte(remote), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// hold lets another client take the bus: of whoever has it, or only if it is free.
func (s *schedule) hold(rob bool) {
	session := s.job.now()
	if session == nil || !s.held.IsZero() {
		return
	}
	if rob {
		session.RemoveBus()
	}
	if session.HoldBus() {
		s.held = time.Now()
		s.hit["held"]++
	}
}

// letGo lets the other client go.
func (s *schedule) letGo() {
	session := s.job.now()
	if session == nil || s.held.IsZero() {
		return
	}
	s.robbed()
	if op, taken := session.Holder(); taken && op == "" {
		session.RemoveBus()
	}
}

// robbed notes that the other client has no bus any more.
func (s *schedule) robbed() {
	if !s.held.IsZero() {
		s.foreign = append(s.foreign, span{s.held, time.Now()})
		s.held = time.Time{}
	}
}

// removeBus is a REMOVE by another client, which takes nothing for itself.
func (s *schedule) removeBus() {
	if session := s.job.now(); session != nil && s.held.IsZero() {
		session.RemoveBus()
	}
}

func (s *schedule) since(at time.Time) time.Duration { return at.Sub(s.began).Round(time.Millisecond) }

func (s *schedule) say(format string, args ...any) {
	fmt.Fprintf(s.log, "time=%s ---- %s\n", time.Now().UTC().Format(time.RFC3339Nano), fmt.Sprintf(format, args...))
}

// journalRoot is a folder of the test, in memory where there is such a one.
func journalRoot(t *testing.T) string {
	t.Helper()
	const memory = "/dev/shm"
	if _, err := os.Stat(memory); err != nil {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(memory, strings.NewReplacer("/", "-", "=", "-").Replace(t.Name())) //nolint:usetesting // in memory
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// enough is how often, at least, everything is met in two hundred schedules.
var enough = map[string]int{
	"fault weather": 20, "fault retry-info": 20, "fault class": 20, "fault hang": 20, "fault slow": 20, "fault late": 20,
	"fault late-hang": 20, "fault cut": 20, "fault cut-hang": 20, "held": 20,

	"state waiting": 200, "state attached": 200, "state lost": 100, "state taken": 10, "state polling": 20, "state closed": 50,

	"kind gap": 15, "kind idle": 1000, "origin backfill": 1000, "origin bus": 10_000, "origin poll": 1000,
	"end bus failed": 100, "end bus stopped": 100, "end inferred failed": 20, "end inferred stopped": 20, "end inferred unknown": 5,
	"end inferred driver_lost": 20, "end inferred session_closed": 5,

	connect.ErrSessionClosed.Error(): 5, connect.ErrOperationAbandoned.Error(): 5, connect.ErrPositionLost.Error(): 2,
	connect.ErrTooLarge.Error(): 2, connect.ErrDisconnected.Error(): 2,
	"the driver has restarted": 20, "no space left": 10, "resumed=true": 50, "somebody removed our listener": 20,
}

// covered checks that the schedules were hard enough.
func covered(t *testing.T, met map[string]int) {
	for _, k := range troubles() {
		if met[k.kind] < 20 {
			t.Errorf("%s befell %d schedules", k.kind, met[k.kind])
		}
	}
	for _, what := range slices.Sorted(maps.Keys(enough)) {
		if t.Logf("%7d %s", met[what], what); met[what] < enough[what] {
			t.Errorf("%s was met %d times, want %d", what, met[what], enough[what])
		}
	}
}
